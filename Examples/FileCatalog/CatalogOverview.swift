import Larder

/// The total figures of a catalog.
struct CatalogOverview {
  /// The number of entries of each kind.
  private(set) var countByKind: [FileKind: Int] = [:]

  /// The total size of files, in bytes.
  private(set) var totalSize: Int64 = 0

  /// The largest files, largest first.
  private(set) var largestFiles = Ranking<StoreEntry<FileRecord>>(capacity: 10) { $0.value.size > $1.value.size }

  /// The number of entries below each name at the top level.
  private var countByFirstName: [StoreKey: Int] = [:]

  /// The top-level folder with the most entries, as the prefix of their paths, or `nil` if there is no folder.
  var fullestPrefix: StoreKey? {
    countByFirstName.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
  }

  mutating func add(_ entry: StoreEntry<FileRecord>) {
    countByKind[entry.value.kind, default: 0] += 1
    if entry.value.kind == .file {
      totalSize += entry.value.size
      largestFiles.insert(entry)
    }
    let path = entry.key.bytes
    if let slash = path.firstIndex(of: UInt8(ascii: "/")) {
      countByFirstName[StoreKey(bytes: path[...slash]), default: 0] += 1
    }
  }
}
