import Foundation
import LarderCBOR

/// The record of six fields as a type that writes and reads itself.
struct HandWrittenUser: CBORConvertible, Sendable, Equatable {
  var id: Int
  var name: String
  var email: String
  var age: Int
  var created: Date
  var tags: [String]

  init(_ user: User) {
    (id, name, email, age, created, tags) = (user.id, user.name, user.email, user.age, user.created, user.tags)
  }

  func write(to writer: inout CBORWriter) throws {
    try writer.writeMap { map in
      try map.write(id, forKey: "id")
      try map.write(name, forKey: "name")
      try map.write(email, forKey: "email")
      try map.write(age, forKey: "age")
      try map.write(created, forKey: "created")
      try map.write(tags, forKey: "tags")
    }
  }

  init(from reader: inout CBORReader) throws {
    (id, name, email, age, created, tags) = try reader.readMap { map in
      (
        try map.read(forKey: "id"), try map.read(forKey: "name"), try map.read(forKey: "email"),
        try map.read(forKey: "age"), try map.read(forKey: "created"), try map.read(forKey: "tags")
      )
    }
  }
}
