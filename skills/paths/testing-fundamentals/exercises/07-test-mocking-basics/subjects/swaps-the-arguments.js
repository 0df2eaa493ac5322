function remind(people, send) {
  for (const person of people) {
    if (person.parcel) send('Your parcel is here', person.email);
  }
}
