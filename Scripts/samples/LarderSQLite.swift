var database: SQLiteDatabase { standIn() }
var customers: SQLiteStore<Customer> { standIn() }
var orders: SQLiteStore<Order> { standIn() }
