const { defineConfig } = require("@medusajs/framework/utils");

const { DATABASE_URL, THAIQR_API_KEY, THAIQR_BASE_URL, THAIQR_WEBHOOK_SECRET } = process.env;

module.exports = defineConfig({
  projectConfig: {
    databaseUrl: DATABASE_URL,
    http: { storeCors: "*", adminCors: "*", authCors: "*", jwtSecret: "only-for-tests", cookieSecret: "only-for-tests" },
  },
  admin: { disable: true },
  plugins: ["thai-qr-payments-medusa"],
  modules: [
    {
      resolve: "@medusajs/medusa/payment",
      options: {
        webhook_delay: 100,
        providers: [
          {
            resolve: "thai-qr-payments-medusa/providers/thaiqr",
            id: "thaiqr",
            options: {
              baseUrl: THAIQR_BASE_URL,
              apiKey: THAIQR_API_KEY,
              webhookSecret: THAIQR_WEBHOOK_SECRET,
            },
          },
        ],
      },
    },
  ],
});
