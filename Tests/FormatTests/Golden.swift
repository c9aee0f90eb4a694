import Foundation
import Larder
import TestSupport
import Testing

/// A committed file or folder in one of the formats on disk, with the content that every later version must read from it.
struct Golden: Sendable, CustomTestStringConvertible {
  /// The time at which the content was written, and at which it is read.
  static let date = Date(timeIntervalSince1970: 1_800_000_000)

  /// The name of the file or folder in `Goldens`.
  let name: String

  /// The texts of the content by key.
  let content: [String: String]

  /// A Boolean value that indicates whether `read-formats.py` reads the format with the standard library of Python.
  var isReadByPython = true

  /// Writes the content to a path that does not exist yet.
  let write: @Sendable (_ path: String) async throws -> Void

  /// Reads the content from a copy.
  let read: @Sendable (_ path: String) async throws -> [String: String]

  var testDescription: String { name }

  /// All goldens.
  static let all = files + layers
}

/// The value of the entries.
struct User: Codable, Sendable, Equatable {
  var name: String
  var visits: Int

  /// The text by which the test and the Python script compare it.
  var text: String { "\(name) \(visits)" }

  static let ada = User(name: "Ada", visits: 1)
  static let bob = User(name: "Bob ☃", visits: -2)

  /// The content of a store with both.
  static let content = ["user:1": ada.text, "user:2": bob.text]
}

extension DataStore {
  /// Reads all entries, with texts of their values.
  func texts(_ text: (Value) -> String) async throws -> [String: String] {
    let entries = try await entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key.string ?? "\($0.key)", text($0.value)) })
  }
}

extension DataStore<User> {
  /// Adds the two users one after the other.
  func writeUsers() async throws {
    try await setValue(.ada, forKey: "user:1")
    try await setValue(.bob, forKey: "user:2")
  }

  /// Reads all users and closes the store.
  func readUsersAndClose() async throws -> [String: String] {
    let texts = try await texts(\.text)
    try await close()
    return texts
  }
}
