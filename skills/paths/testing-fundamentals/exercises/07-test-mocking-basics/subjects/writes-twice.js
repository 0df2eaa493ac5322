function remind(people, send) {
  for (const person of people) {
    if (person.parcel) {
      send(person.email, 'Your parcel is here');
      send(person.email, 'Your parcel is here');
    }
  }
}
