import Foundation
import Larder
import LarderCompressedFile
// snippet.time-to-live
import LarderExpiry
import LarderJSON
// snippet.end
import LarderLMDB
import LarderSQLite

/// A kind of store to test.
struct TestedStore: Sendable {
  /// The name in the table.
  let name: String

  /// A closure that opens an empty store in the given folder, which belongs to the store.
  let open: @Sendable (_ folder: String) async throws -> AnyDataStore<Expiring<[UInt8]>>

  /// Creates a kind of store.
  ///
  /// - Parameters:
  ///   - name: The name in the table.
  ///   - open: A closure that opens an empty store in a folder of its own.
  init<Store: DataStore<Expiring<[UInt8]>>>(
    _ name: String, open: @escaping @Sendable (_ folder: String) async throws -> Store
  ) {
    self.name = name
    self.open = { folder in AnyDataStore(try await open(folder)) }
  }

  /// All stores of Larder.
  ///
  /// Stores with files only wait for the disk in `synchronize`.
  static let all = [
    TestedStore("MemoryStore") { _ in MemoryStore() },
    TestedStore("JSONFileStore") {
      try await JSONFileStore(path: "\($0)/images.json", codec: .raw.expiring(), durability: .buffered)
    },
    TestedStore("CompressedFileStore") {
      try await CompressedFileStore(path: "\($0)/images.gz", codec: .raw.expiring(), durability: .buffered)
    },
    TestedStore("LMDBStore") {
      try await LMDBStore(path: "\($0)/images.lmdb", codec: .raw.expiring(), durability: .buffered)
    },
    TestedStore("SQLiteStore") {
      try await SQLiteStore(path: "\($0)/images.sqlite", codec: .raw.expiring(), durability: .buffered)
    },
  ]
}
