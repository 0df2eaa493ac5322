// async function fetchUser(id) {...}

test('fetches user successfully', async () => {
  // Your code here
});