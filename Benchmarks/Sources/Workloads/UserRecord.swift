import Foundation
import GRDB

/// A `User` as GRDB stores it: a row, with the tags as text.
struct UserRecord: Codable, FetchableRecord, PersistableRecord {
  static let databaseTableName = "user"

  var id: Int
  var name: String
  var email: String
  var age: Int
  var created: Date
  var tags: [String]

  init(_ user: User) {
    id = user.id
    name = user.name
    email = user.email
    age = user.age
    created = user.created
    tags = user.tags
  }

  /// Creates the table of the records.
  static func createTable(in database: Database) throws {
    try database.create(table: databaseTableName) { table in
      table.primaryKey("id", .integer)
      table.column("name", .text).notNull()
      table.column("email", .text).notNull()
      table.column("age", .integer).notNull()
      table.column("created", .datetime).notNull()
      table.column("tags", .text).notNull()
    }
  }
}
