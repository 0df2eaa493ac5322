globalThis.fetch = async function fetch(url) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  return {
    ok: true,
    status: 200,
    async json() {
      return { name: 'Test User' };
    },
  };
};

async function fetchUser(id) {
  const response = await fetch(`/users/${id}`);
  const { name } = await response.json();
  return { id: String(id), name };
}
