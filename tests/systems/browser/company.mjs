// The log-in of a company: a certified OpenID provider (npm's oidc-provider). Everybody it knows is `name@shop.example`.
import Provider from "oidc-provider";

const { port, callback } = JSON.parse(process.argv[1]);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "console", client_secret: "secret-of-the-console", redirect_uris: [callback] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  cookies: { keys: ["a key of the tests"] },
  findAccount: (context, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: id,
      email: `${id.replace("unproven-", "")}@shop.example`,
      email_verified: !id.startsWith("unproven-"),
    }),
  }),
});
provider.listen(port, "127.0.0.1", () => console.log("ready"));
