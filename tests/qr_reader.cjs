// Reads pictures from standard input: width and height, four bytes each, then a byte of gray for each pixel.
// Prints the text of the QR code on each picture, or null, as JSON. The argument is the folder of jsQR.
const { readFileSync } = require("node:fs");
const jsQR = require(process.argv[2]);

const input = readFileSync(0);
const texts = [];
for (let at = 0; at < input.length; ) {
  const [width, height] = [input.readUInt32BE(at), input.readUInt32BE(at + 4)];
  at += 8;
  const pixels = new Uint8ClampedArray(4 * width * height).fill(255);
  for (let pixel = 0; pixel < width * height; pixel += 1, at += 1) {
    pixels.fill(input[at], 4 * pixel, 4 * pixel + 3);
  }
  const found = jsQR(pixels, width, height, { inversionAttempts: "dontInvert" });
  texts.push(found && found.data);
}
console.log(JSON.stringify(texts));
