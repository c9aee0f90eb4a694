import Foundation
import Larder
import LarderCompression
import LarderExpiry
import LarderJSON
import LarderLMDB

/// A kind of store that the test is made with.
struct TestedStore: Sendable {
  /// What stands in the table.
  let name: String

  /// Opens an empty store; `folder` is the store's own.
  let open: @Sendable (_ folder: String) async throws -> AnyDataStore<Expiring<[UInt8]>>

  /// Describes a kind of store.
  ///
  /// - Parameters:
  ///   - name: What stands in the table.
  ///   - open: Opens an empty store in a folder of its own.
  init<Store: DataStore<Expiring<[UInt8]>>>(
    _ name: String, open: @escaping @Sendable (_ folder: String) async throws -> Store
  ) {
    self.name = name
    self.open = { folder in AnyDataStore(try await open(folder)) }
  }

  /// Every store that there is.
  ///
  /// They leave it to `synchronize` to wait for the disk, where they have one.
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
  ]
}
