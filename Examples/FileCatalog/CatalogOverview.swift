import Larder

/// What the entries of a catalogue add up to.
struct CatalogOverview {
  /// How many entries there are of each kind.
  private(set) var countByKind: [FileKind: Int] = [:]

  /// The bytes in files.
  private(set) var totalSize: Int64 = 0

  /// The largest files, the largest first.
  private(set) var largestFiles = Ranking<StoreEntry<FileRecord>>(capacity: 10) { $0.value.size > $1.value.size }

  /// How many entries lie under each name at the top.
  private var countByFirstName: [StoreKey: Int] = [:]

  /// The folder at the top with the most in it, as the prefix of the paths there; `nil` where there is no folder.
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
