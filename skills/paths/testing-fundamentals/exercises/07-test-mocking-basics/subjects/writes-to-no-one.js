function remind(people, send) {
  for (const person of people) {
    if (person.parcel) person.reminded = true;
  }
}
