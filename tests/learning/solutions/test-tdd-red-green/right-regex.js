const initials = (name) => (name.match(/\S+/g) || []).map((w) => w.charAt(0).toUpperCase()).join('');
