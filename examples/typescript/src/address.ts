/** Where the server is: in clear, or behind TLS where REPERTOIRE_CA names the authorities to trust. */
export function address(): string {
  const address = process.env.REPERTOIRE_ADDRESS ?? "127.0.0.1:50051";
  return process.env.REPERTOIRE_CA ? `https://${address}` : address;
}
