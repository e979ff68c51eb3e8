// Reads the events now, as the job does each minute.

const { default: readEvents } = require("thai-qr-payments-medusa/jobs/thaiqr-events");

exports.POST = async (request, response) => {
  await readEvents(request.scope);
  response.sendStatus(200);
};
