/// A kind of store that keeps files, for tests of what holds for each of them.
enum StoreKind: String, CaseIterable {
  case json
  case compressed
  case lmdb

  /// The name of a store's file or folder.
  ///
  /// - Parameter name: What it begins with; `store` unless given.
  func fileName(_ name: String = "store") -> String { "\(name).\(rawValue)" }

  /// The file of a store that grows while much is written into it.
  func growingFile(_ name: String) -> String {
    switch self {
    case .json: "\(fileName(name)).journal"
    case .compressed: fileName(name)
    case .lmdb: "\(fileName(name))/data.mdb"
    }
  }

  /// The URL of a store in a folder.
  ///
  /// - Parameters:
  ///   - name: What the name of its file or folder begins with; `store` unless given.
  ///   - folder: Where it is.
  func url(_ name: String = "store", in folder: TemporaryFolder) -> String {
    "\(rawValue):\(folder.file(fileName(name)))"
  }
}
