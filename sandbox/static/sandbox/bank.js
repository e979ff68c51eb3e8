// Where the browser can read barcodes, a picture of the code fills in the text.
"use strict";

if ("BarcodeDetector" in window) {
  const image = document.getElementById("image");
  const notFound = document.getElementById("not-found");
  document.getElementById("picture").hidden = false;

  image.addEventListener("change", async () => {
    notFound.hidden = true;
    try {
      const detector = new BarcodeDetector({ formats: ["qr_code"] });
      const [code] = await detector.detect(await createImageBitmap(image.files[0]));
      document.getElementById("qr_data").value = code.rawValue;
      document.getElementById("lookup").requestSubmit();
    } catch {
      notFound.hidden = false;
    }
  });
}
