import LarderCBOR

var environment: LMDBEnvironment { standIn() }
var users: LMDBStore<User> { standIn() }
var customers: LMDBStore<Customer> { standIn() }
var orders: LMDBStore<Order> { standIn() }
var events: LMDBStore<Event> { standIn() }
