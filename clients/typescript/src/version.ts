/** The version of this package: that of the API, as npm writes it (`1.0.0.dev0` is `1.0.0-dev.0`). */
export const VERSION = "1.0.0-dev.0";
