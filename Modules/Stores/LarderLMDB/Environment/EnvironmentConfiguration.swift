#if LMDB
import Larder

/// How an environment is opened.
struct EnvironmentConfiguration: Sendable {
  /// What errors call it.
  var name: String
  /// Where it is.
  var path: String
  var durability: Durability
  var access: StoreAccess
  var createsIfMissing: Bool
  /// How large the memory map is at first, in bytes, where the system accepts that much.
  var initialMapSize: Int

  /// The address space that an environment asks for first: it costs nothing until it is used, and what the map has room
  /// for never has to grow.
  static let defaultMapSize = 1 << 40

  /// Finds the files, `nil` where nothing is at the path.
  ///
  /// - Throws: ``StoreError``.
  func findFiles() throws -> EnvironmentFiles? {
    try EnvironmentFiles.find(path, store: name)
  }
}
#endif
