import GRDB

extension Order: PersistableRecord {}

var pool: DatabasePool { standIn() }
var users: GRDBStore<User> { standIn() }
var migrator: DatabaseMigrator {
  get { standIn() }
  set {}
}
