// A very small part of Testing Library. A page is a function that gives `draw`;
// `draw` gives what is on the screen: elements with role, text, name, onClick.
(() => {
  let page = null;

  const drawn = () => {
    if (page === null) throw new Error('Nothing is on the screen. Call render first.');
    return page.draw().map((element) => Object.freeze({ ...element }));
  };

  const one = (found, what) => {
    if (found.length === 0) throw new Error(`Nothing on the screen is ${what}.`);
    if (found.length > 1) throw new Error(`More than one thing on the screen is ${what}.`);
    return found[0];
  };

  const byText = (text) => drawn().filter((element) => element.text === text);
  const byRole = (role, { name } = {}) =>
    drawn().filter(
      (element) => element.role === role && (name === undefined || element.name === name),
    );

  globalThis.render = (Page) => {
    page = Page();
  };

  globalThis.screen = Object.freeze({
    getByText: (text) => one(byText(text), `the text "${text}"`),
    queryByText: (text) => byText(text)[0] ?? null,
    getByRole: (role, options) =>
      one(
        byRole(role, options),
        options && options.name ? `a ${role} named "${options.name}"` : `a ${role}`,
      ),
    queryByRole: (role, options) => byRole(role, options)[0] ?? null,
  });

  globalThis.userEvent = Object.freeze({
    click: (element) => {
      if (typeof element.onClick === 'function') element.onClick();
    },
  });
})();
