#if LMDB
import Foundation
import Larder
import LarderFiles
import TestSupport

@testable import LarderLMDB

/// A data file of either format with a tree of three levels, values on overflow pages, and free pages.
struct ExaminedImage: Sendable {
  let format: DataFileFormat
  let bytes: [UInt8]
  /// The pages that lead to each entry: those of the list of databases, of the tree, and of its value.
  let paths: [StoreKey: Set<UInt64>]
  /// The pages that have no header, because they continue a value.
  let bodies: Set<UInt64>
  /// The branch pages of the store `default`.
  let branches: Set<UInt64>
  /// The root pages of the stores.
  let roots: [String: UInt64]
  /// The pages of the free list.
  let freeListPages: Set<UInt64>

  static let pageSize = 4096
  static let number = 600

  /// The entries of the store `default`.
  static let entries: [StoreKey: [UInt8]] = Dictionary(
    uniqueKeysWithValues: (0..<number).map { (key($0), value($0)) })

  /// Long keys make the tree deep.
  private static func key(_ number: Int) -> StoreKey {
    StoreKey(String(repeating: "k", count: 200) + "\(100_000 + number)")
  }

  private static func value(_ number: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(number % 251), count: number.isMultiple(of: 50) ? 9000 + number : number % 200)
  }

  /// Writes a data file into the folder of an environment.
  static func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path + "/data.mdb"))
    // Without a lock file, the library does not open it read-only.
    try Data().write(to: URL(filePath: path + "/lock.mdb"))
  }

  /// The reason why there are no files of a format here, or `nil`.
  static func obstacle(_ format: DataFileFormat) -> String? {
    format == .linked ? nil : ForeignTool.otherLibraryObstacle
  }

  /// Creates the environment of a format at a path.
  static func create(_ format: DataFileFormat, at path: String) async throws {
    if format == .linked {
      let environment = try await LMDBEnvironment(path: path, durability: .buffered)
      for name in ["default", "other"] {
        let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
        try await store.apply(ChangeBatch(entries.map { .set($0.key, $0.value) }))
      }
      let store = try await LMDBStore<[UInt8]>(in: environment, name: "other", codec: .raw)
      for number in 100..<500 where !number.isMultiple(of: 7) { try await store.removeValue(forKey: key(number)) }
      try await environment.close()
    } else {
      let program = """
        environment = lmdb.open(sys.argv[1], max_dbs=4, map_size=1 << 26, sync=False)
        names = [b"default", b"other"]
        databases = [environment.open_db(name) for name in names]
        records = environment.open_db(b"larder")
        def key(number): return b"k" * 200 + b"%d" % (100000 + number)
        with environment.begin(write=True) as transaction:
          for name, database in zip(names, databases):
            transaction.put(name, b'{"codec":"raw","format":1}', db=records)
            for number in range(\(number)):
              value = bytes([number % 251]) * (9000 + number if number % 50 == 0 else number % 200)
              transaction.put(key(number), value, db=database)
        for number in range(100, 500):
          if number % 7:
            with environment.begin(write=True) as transaction: transaction.delete(key(number), db=databases[1])
        environment.close()
        """
      _ = try ForeignTool.runOther(program, path)
    }
  }

  /// The images of all formats, each made once.
  private static let images: [UInt32: Task<ExaminedImage, any Error>] = Dictionary(
    uniqueKeysWithValues: DataFileFormat.all.filter { obstacle($0) == nil }.map { format in
      (format.version, Task { try await create(format) })
    })

  /// Returns a file of a format, and its pages.
  static func make(_ format: DataFileFormat) async throws -> ExaminedImage {
    guard let image = images[format.version] else { throw ForeignTool.Failed(description: "there is no other library") }
    return try await image.value
  }

  /// Creates a file of a format, and finds its pages.
  private static func create(_ format: DataFileFormat) async throws -> ExaminedImage {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    try await create(format, at: path)
    let snapshot = try DataFileReader(path + "/data.mdb", store: "image").latestSnapshot()
    var paths: [StoreKey: Set<UInt64>] = [:]
    func walk(_ number: UInt64, _ above: Set<UInt64>, _ visit: (DataPage, DataPage.Node, Set<UInt64>) throws -> Void)
      throws
    {
      let page = try snapshot.page(number)
      let path = above.union([number])
      for index in 0..<page.nodeCount {
        guard let node = page.node(index) else { throw ForeignTool.Failed(description: "the image is damaged") }
        if case .child(let child) = node.content { try walk(child, path, visit) } else { try visit(page, node, path) }
      }
    }
    var (freeListPages, bodies, branches): (Set<UInt64>, Set<UInt64>, Set<UInt64>) = ([], [], [])
    var roots: [String: UInt64] = [:]
    if let root = snapshot.meta.freePages.root { try walk(root, []) { _, _, path in freeListPages.formUnion(path) } }
    try walk(snapshot.meta.main.root ?? 0, []) { page, node, above in
      guard case .database(let record) = node.content else { return }
      let name = String(decoding: page.bytes[node.key].prefix { $0 > 0 }, as: UTF8.self)
      roots[name] = record.root
      guard name == "default" else { return }
      try walk(record.root ?? 0, above) { page, node, path in
        branches.formUnion(path.subtracting(above).subtracting([page.number]))
        var path = path
        if case .overflow(let first, let size) = node.content {
          let count = (size + format.pageHeaderSize + ExaminedImage.pageSize - 1) / ExaminedImage.pageSize
          path.formUnion(first..<first + UInt64(count))
          bodies.formUnion(first + 1..<first + UInt64(count))
        }
        paths[StoreKey(bytes: page.bytes[node.key])] = path
      }
    }
    let bytes = try Array(Data(contentsOf: URL(filePath: path + "/data.mdb")))
    return ExaminedImage(
      format: format, bytes: bytes, paths: paths, bodies: bodies, branches: branches, roots: roots,
      freeListPages: freeListPages)
  }
}

extension ForeignTool {
  /// Runs a Python program with the major version of LMDB that this process does not have.
  static func runOther(_ program: String, _ arguments: String...) throws -> [Substring] {
    // Python loads the library of the system unless this variable names another one.
    let setting = DataFileFormat.linked == .version1 ? otherLibrary ?? "" : ""
    return try lines(
      of: ["LD_LIBRARY_PATH=\(setting)", python ?? "", "-c", "import lmdb, sys\n" + program] + arguments)
  }
}

/// A store that is opened to be examined, and the loops of the tool over it.
struct Examination: Sendable {
  let store: AnyDataStore<[UInt8]>

  init(_ path: String, access: StoreAccess = .readOnly, findsPossiblyOlder: Bool = false) async throws {
    let untyped = try await LMDBStoreProvider(examinesPages: true, findsPossiblyOlder: findsPossiblyOlder).open(
      try StoreURL("lmdb:\(path)"), options: StoreOptions(createsIfMissing: false, access: access), newCodecName: "raw")
    store = try await untyped.typed(codec: .raw)
  }

  /// Reads all entries behind each damage, as `larder salvage` does, and the keys that were lost.
  func salvage() async throws -> (entries: [StoreEntry<[UInt8]>], lost: [KeyRange]) {
    var (entries, lost): ([StoreEntry<[UInt8]>], [KeyRange]) = ([], [])
    for try await part in store.salvage(batchSize: 100) {
      switch part {
      case .entries(let found): entries += found
      case .unreadable(let keys, let error):
        // Otherwise, the sequence has ended there.
        guard error.lostKeys != nil else { throw error }
        lost.append(keys)
      }
    }
    return (entries, lost)
  }
}
#endif
