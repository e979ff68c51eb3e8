// Makes what a shop needs to sell one product, and prints its keys.

const workflows = require("@medusajs/medusa/core-flows");

exports.default = async function seed({ container }) {
  const run = async (name, input) => (await workflows[name](container).run({ input })).result;
  const [channel] = await run("createSalesChannelsWorkflow", { salesChannelsData: [{ name: "Web" }] });
  const [region] = await run("createRegionsWorkflow", {
    regions: [{ name: "Thailand", currency_code: "thb", countries: ["th"], payment_providers: ["pp_thaiqr_thaiqr"] }],
  });
  const [product] = await run("createProductsWorkflow", {
    products: [
      {
        title: "Somtam",
        status: "published",
        options: [{ title: "Size", values: ["One"] }],
        variants: [
          {
            title: "One",
            options: { Size: "One" },
            manage_inventory: false,
            prices: [{ currency_code: "thb", amount: 150.25 }],
          },
        ],
        sales_channels: [{ id: channel.id }],
      },
    ],
  });
  const keys = ["publishable", "secret"].map((type) => ({ title: type, type, created_by: "tests" }));
  const [publishable, secret] = await run("createApiKeysWorkflow", { api_keys: keys });
  await run("linkSalesChannelsToApiKeyWorkflow", { id: publishable.id, add: [channel.id] });
  const made = {
    publishable: publishable.token,
    secret: secret.token,
    region: region.id,
    variant: product.variants[0].id,
  };
  console.log(`seeded ${JSON.stringify(made)}`);
};
