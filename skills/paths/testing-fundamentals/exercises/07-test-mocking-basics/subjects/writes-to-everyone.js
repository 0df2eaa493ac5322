function remind(people, send) {
  for (const person of people) {
    send(person.email, 'Your parcel is here');
  }
}
