// Prints the methods of the client, such as `payments.get`.
import { ThaiQR } from "thai-qr-payments";

const client = new ThaiQR({ apiKey: "tq_test_x", baseUrl: "http://127.0.0.1" });
const methods = Object.entries(client).flatMap(([group, resource]) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(resource))
    .filter((name) => name !== "constructor")
    .map((name) => `${group}.${name}`),
);
console.log(JSON.stringify(methods));
