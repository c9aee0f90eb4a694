#if LMDB
import CLMDB
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// Stores that are read page by page, from files of both formats, intact and damaged.
@Suite(.timeLimit(.minutes(60))) struct ExaminedStoreTests {
  private static let formats = DataFileFormat.all.filter { ExaminedImage.obstacle($0) == nil }

  private let folder: TemporaryFolder
  private var path: String { folder.path("environment") }

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("environment"), withIntermediateDirectories: false)
  }

  private func write(_ bytes: [UInt8]) throws {
    try ExaminedImage.write(bytes, to: path)
  }

  // MARK: Intact files

  @Test(arguments: formats) func `an intact file is read in every way`(_ format: DataFileFormat) async throws {
    let image = try await ExaminedImage.make(format)
    #expect(Set(image.paths.keys) == Set(ExaminedImage.entries.keys))
    #expect(image.paths.values.map(\.count).max() ?? 0 >= 4)
    try write(image.bytes)
    for access in [StoreAccess.readOnly, .immutable] {
      let examination = try await Examination(path, access: access)
      let store = examination.store
      let sorted = ExaminedImage.entries.sorted { $0.key < $1.key }
      let all = try await store.entries(in: .all, limit: .max, order: .ascending)
      #expect(all.map(\.key) == sorted.map(\.key) && all.map(\.value) == sorted.map(\.value))
      #expect(try await store.keys(in: .all, limit: 10, order: .descending) == sorted.suffix(10).map(\.key).reversed())
      #expect(try await store.count(in: sorted[7].key..<sorted[300].key) == 293)
      #expect(try await store.value(forKey: sorted[50].key) == sorted[50].value)
      #expect(try await store.values(forKeys: ["missing", sorted[3].key]) == [nil, sorted[3].value])
      let report = try #require(try await store.maintenance?.verify())
      #expect(report == VerificationReport(entryCount: ExaminedImage.number))
      #expect(try await examination.salvage().lost.isEmpty)
      #expect(try await store.maintenance?.storeStatistics().entryCount == ExaminedImage.number)
      await expectStoreError(.notPermitted) { try await store.setValue([], forKey: "new") }
      await expectStoreError(.unsupported) { try await store.maintenance?.backup(to: folder.path("backup")) }
      try await store.close()
      await expectStoreError(.closed) { try await store.value(forKey: "key") }
    }
    #expect(try Data(contentsOf: URL(filePath: path + "/data.mdb")) == Data(image.bytes))
    await expectStoreError(.notFound) { try await Examination(path + "#missing") }
    await expectStoreError(.notFound) { try await Examination(folder.path("missing")) }
  }

  /// A read of the library protects the pages.
  @Test func `entries are examined while they are written`() async throws {
    let store = try await LMDBStore<[UInt8]>(path: path, codec: .raw, durability: .buffered)
    try await store.apply(
      ChangeBatch((0..<2000).map { .set(StoreKey(integer: $0), [UInt8](repeating: 1, count: 100)) }))
    let isDone = Flag()
    let writing = Task {
      var count = 0
      while !isDone.isSet {
        count += 1
        let value = [UInt8](repeating: UInt8(count % 256), count: 100)
        try await store.apply(ChangeBatch((0..<200).map { .set(StoreKey(integer: ($0 * 7 + count) % 2000), value) }))
      }
      return count
    }
    // Another process, because one process has one access.
    await #expect(processExitsWith: .success) { [path = path as String] in
      let examination = try await Examination(path)
      for _ in 0..<10 {
        let report = try #require(try await examination.store.maintenance?.verify())
        #expect(report == VerificationReport(entryCount: 2000))
      }
      try await examination.store.close()
    }
    isDone.set()
    #expect(try await writing.value > 1)
    try await store.close()
  }

  /// Another program has created an entry or a database with the name of a store.
  @Test(arguments: ["plain", "several"]) func `an object that is no store is refused`(name: String) async throws {
    try await LMDBStore<[UInt8]>(path: path, codec: .raw).close()
    try ForeignTool.write(to: path) { transaction in
      var database: MDB_dbi = 0
      if name == "plain" {
        try LMDBError.check(mdb_dbi_open(transaction, nil, 0, &database))
        try RawDatabase(transaction: transaction, identifier: database).setValue(
          [1], forKey: DataFileFormat.linked.key(ofDatabase: "plain"))
      } else {
        try LMDBError.check(mdb_dbi_open(transaction, name, UInt32(MDB_CREATE | MDB_DUPSORT), &database))
      }
    }
    let error = await expectStoreError(.unsupported) { try await Examination("\(path)#\(name)") }
    #expect(error?.operation == .open && error?.message.contains("choose another name") == true)
    let examination = try await Examination(path)
    #expect(try await examination.store.count(in: .all) == 0)
    try await examination.store.close()
  }

  @Test func `a store that another program removes is a conflict`() async throws {
    let environment = try await LMDBEnvironment(path: path)
    for name in ["default", "other"] {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      try await store.setValue([1], forKey: "k")
    }
    try await environment.close()
    let (store, neighbour) = (try await Examination(path + "#other").store, try await Examination(path).store)
    #expect(try await store.value(forKey: "k") == [1])
    await #expect(processExitsWith: .success) { [path = path as String] in
      let environment = try await LMDBEnvironment(path: path)
      try await environment.removeStore("other")
      try await environment.close()
    }
    let reads: [@Sendable () async throws -> Void] = [
      { _ = try await store.value(forKey: "k") }, { _ = try await store.count(in: .all) },
      { _ = try await store.maintenance?.verify() },
    ]
    for read in reads {
      let error = await expectStoreError(.conflict) { try await read() }
      #expect(error?.isRetryable == true && error?.message.contains("removed") == true)
    }
    #expect(try await neighbour.value(forKey: "k") == [1])
    try await store.close()
    try await neighbour.close()
  }

  /// A program that writes all the time to a damaged file, which no transaction of the library protects.
  @Test(arguments: [1, 50, .max]) func `a read is repeated while another program writes`(writes: Int) async throws {
    let image = try await ExaminedImage.make(.linked)
    let size = ExaminedImage.pageSize
    try write([UInt8](repeating: 0, count: size) + image.bytes.dropFirst(size))
    let environment = try await ExaminedEnvironment(
      EnvironmentConfiguration(path: path, access: .readOnly, createsIfMissing: false), findsPossiblyOlder: false)
    let attempts = Tally()
    /// Reads the meta page, while two transactions are committed in the meantime.
    @Sendable func read(_ snapshot: DataFileSnapshot) throws -> UInt64 {
      attempts.add()
      if attempts.count <= writes {
        let file = try POSIXFileSystem().open(path + "/data.mdb", .readWrite)
        let number = snapshot.meta.transaction + 2
        try file.writeAll(withUnsafeBytes(of: number) { Array($0) }, at: Int64(size + 144 + image.format.shift))
        try file.close()
      }
      return snapshot.meta.transaction
    }
    if writes == .max {
      let error = await expectStoreError(.conflict) { try await environment.read(for: .count, read) }
      #expect(error?.isRetryable == true && error?.operation == .count && attempts.count == 100)
    } else {
      let first = try await environment.read(for: .count) { $0.meta.transaction }
      #expect(try await environment.read(for: .count, read) == first + 2 * UInt64(writes))
      #expect(attempts.count == writes + 1)
    }
    try await environment.close()
  }

  @Test func `a lost disk is an error of the operation`() async throws {
    try write(try await ExaminedImage.make(.linked).bytes)
    let environment = try await ExaminedEnvironment(
      EnvironmentConfiguration(path: path, access: .readOnly, createsIfMissing: false), findsPossiblyOlder: false)
    let error = await expectStoreError(.ioFailed) {
      try await environment.read(for: .count) { _ in throw FileError(.read, path: "data.mdb", errorNumber: ESTALE) }
    }
    #expect(error?.operation == .count && error?.store == "environment")
    try await environment.close()
  }

  // MARK: Damage

  /// The library would take the value for the record of a database.
  @Test(arguments: formats) func `an entry whose value is marked as a database is one damaged entry`(
    _ format: DataFileFormat
  ) async throws {
    let image = try await ExaminedImage.make(format)
    try write(image.bytes)
    let snapshot = try DataFileReader(path + "/data.mdb", store: "store").latestSnapshot()
    let key = try #require(ExaminedImage.entries.filter { $0.value.count == DatabaseRecord.size }.keys.min())
    var bytes = image.bytes
    for number in image.paths[key] ?? [] {
      let page = try snapshot.page(number)
      guard page.kind == .leaf else { continue }
      for node in (0..<page.nodeCount).compactMap(page.node) where StoreKey(bytes: page.bytes[node.key]) == key {
        // The flags of the node.
        bytes[Int(number) * ExaminedImage.pageSize + node.key.lowerBound - 4] = 0x02
      }
    }
    try write(bytes)
    let examination = try await Examination(path)
    let error = await expectStoreError(.corrupted) { try await examination.store.value(forKey: key) }
    #expect(error?.key == key && error?.message.contains("in place of a value") == true)
    let report = try #require(try await examination.store.maintenance?.verify())
    #expect(report.findings.map(\.key) == [key] && report.entryCount == ExaminedImage.number)
    let (entries, lost) = try await examination.salvage()
    #expect(lost == [.only(key)] && entries.count == ExaminedImage.number - 1)
    #expect(entries.allSatisfy { ExaminedImage.entries[$0.key] == $0.value })
    try await examination.store.close()
  }

  /// One meta page is enough.
  @Test(arguments: formats, [0, 1]) func `a damaged meta page is one finding`(_ format: DataFileFormat, _ number: Int)
    async throws
  {
    let image = try await ExaminedImage.make(format)
    for (count, content) in [(ExaminedImage.pageSize, 0 as UInt8), (20, 0xFF), (format.pageHeaderSize + 8, 0x20)] {
      var bytes = image.bytes
      for place in 0..<count { bytes[number * ExaminedImage.pageSize + place] = content }
      try write(bytes)
      let examination = try await Examination(path)
      let report = try #require(try await examination.store.maintenance?.verify())
      #expect(report.entryCount == ExaminedImage.number)
      #expect(report.findings.map(\.place) == ["environment, page \(number)"])
      let found = try await examination.salvage()
      #expect(found.lost.isEmpty && found.entries.allSatisfy { ExaminedImage.entries[$0.key] == $0.value })
      try await examination.store.close()
    }
  }

  @Test(arguments: formats) func `a file without meta pages is refused`(_ format: DataFileFormat) async throws {
    var bytes = try await ExaminedImage.make(format).bytes
    for place in 0..<2 * ExaminedImage.pageSize { bytes[place] = 0xFF }
    try write(bytes)
    await expectStoreError(.unrecognizedFormat) { try await Examination(path) }
    try write(Array(bytes.prefix(100)))
    await expectStoreError(.unrecognizedFormat) { try await Examination(path) }
  }

  /// A page that is used by two trees, and a cycle.
  @Test(arguments: formats) func `a cycle is damage`(_ format: DataFileFormat) async throws {
    let image = try await ExaminedImage.make(format)
    try write(image.bytes)
    let reader = try DataFileReader(path + "/data.mdb", store: "store")
    let snapshot = try reader.latestSnapshot()
    let record = try #require(try snapshot.database(named: "default", store: "store", during: .read))
    let root = try #require(record.root)
    let page = try snapshot.page(root)
    #expect(page.kind == .branch)
    var bytes = image.bytes
    // The second child is the root itself.
    let node = try #require(page.node(1))
    let place = Int(root) * ExaminedImage.pageSize + node.key.lowerBound - 8
    withUnsafeBytes(of: UInt32(root)) { bytes.replaceSubrange(place..<place + 4, with: $0) }
    try write(bytes)
    let examination = try await Examination(path)
    let report = try #require(try await examination.store.maintenance?.verify())
    #expect(report.findings.count == 1)
    #expect(report.findings.first?.message.contains("in use twice") == true)
    // The leaves below the second child are found without it.
    let found = try await examination.salvage()
    #expect(found.lost.isEmpty && found.entries.count == ExaminedImage.number)
    try await examination.store.close()
  }

  private static let fileCount = TestDepth.isShort ? 25 : 2000

  /// Damages a number of pages, and returns them.
  private func damage(
    _ image: ExaminedImage, using random: inout SeededGenerator
  ) -> (bytes: [UInt8], pages: Set<UInt64>, destroyed: Set<UInt64>) {
    let size = ExaminedImage.pageSize
    var bytes = image.bytes
    var (pages, destroyed): (Set<UInt64>, Set<UInt64>) = ([], [])
    let used = image.paths.values.reduce(into: Set<UInt64>()) { $0.formUnion($1) }.union(image.freeListPages).sorted()
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let page = used[Int.random(in: 0..<used.count, using: &random)]
      pages.insert(page)
      let start = Int(page) * size
      switch Int.random(in: 0..<6, using: &random) {
      case 0:
        for place in start..<start + size { bytes[place] = 0 }
        if !image.bodies.contains(page) { destroyed.insert(page) }
      case 1:
        for place in start..<start + size { bytes[place] = UInt8(truncatingIfNeeded: random.next()) }
      case 2:
        let other = Int(used[Int.random(in: 0..<used.count, using: &random)]) * size
        bytes.replaceSubrange(start..<start + size, with: image.bytes[other..<other + size])
        destroyed.remove(page)
      case 3:
        // The header and the places of the nodes.
        for _ in 0..<Int.random(in: 1...8, using: &random) {
          bytes[start + Int.random(in: 0..<64, using: &random)] = UInt8(truncatingIfNeeded: random.next())
        }
      default:
        for _ in 0..<Int.random(in: 1...40, using: &random) {
          bytes[start + Int.random(in: 0..<size, using: &random)] =
            [0x00, 0x01, 0x7F, 0xFF, UInt8(truncatingIfNeeded: random.next())][Int.random(in: 0..<5, using: &random)]
        }
      }
    }
    if Int.random(in: 0..<10, using: &random) == 0 {
      let count = Int.random(in: 2 * size..<bytes.count, using: &random)
      bytes.removeLast(bytes.count - count)
      pages.formUnion(UInt64(count / size)...UInt64(image.bytes.count / size))
    }
    return (bytes, pages, destroyed)
  }

  /// Checks that entries that may be older replace no others.
  private func checkPossiblyOlder(besides found: [StoreKey: [UInt8]], _ comment: Comment) async throws {
    let examination: Examination
    do {
      examination = try await Examination(path, findsPossiblyOlder: true)
    } catch let error as StoreError where [.corrupted, .notFound, .unsupported].contains(error.code) {
      #expect(found.isEmpty, comment)
      return
    }
    let entries = try await examination.salvage().entries
    #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.key < $1.key }, comment)
    let all = Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
    #expect(found.allSatisfy { all[$0.key] == $0.value }, comment)
    try await examination.store.close()
  }

  @Test(arguments: formats) func `damaged pages cost their entries only`(_ format: DataFileFormat) async throws {
    let image = try await ExaminedImage.make(format)
    var random = SeededGenerator(test: #function)
    for number in 0..<ExaminedStoreTests.fileCount {
      let (bytes, pages, destroyed) = damage(image, using: &random)
      try write(bytes)
      let intact = image.paths.filter { $0.value.isDisjoint(with: pages) }
      let examination: Examination
      do {
        examination = try await Examination(path)
      } catch let error as StoreError where [.corrupted, .notFound, .unsupported].contains(error.code) {
        // The list of the databases is on one page.
        #expect(intact.isEmpty, "\(number): \(error)")
        if number.isMultiple(of: 4) { try await checkPossiblyOlder(besides: [:], "\(number)") }
        continue
      }
      let report = try #require(try await examination.store.maintenance?.verify())
      let (entries, lost) = try await examination.salvage()
      #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.key < $1.key }, "\(number)")
      #expect(entries.count <= report.entryCount, "\(number)")
      let found = Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
      let missing = intact.keys.filter { found[$0] != ExaminedImage.entries[$0] }
      #expect(missing.isEmpty, "\(number): \(missing.count) intact entries are missing, \(report.findings)")
      // A page above an intact leaf costs nothing, unless other damage makes it unknown where the leaf belongs.
      let isDestroyed = pages.subtracting(image.bodies).allSatisfy { page in
        let header = bytes.dropFirst(Int(page) * ExaminedImage.pageSize).prefix(8)
        return PageBytes(header).integer(at: 0) != page
      }
      if isDestroyed, bytes.count == image.bytes.count, pages.isDisjoint(with: image.freeListPages) {
        let readable = image.paths.filter { $0.value.subtracting(image.branches).isDisjoint(with: pages) }
        let missing = readable.keys.filter { found[$0] != ExaminedImage.entries[$0] }
        #expect(missing.isEmpty, "\(number): \(missing.count) entries of intact leaves are missing, \(report.findings)")
      }
      if number.isMultiple(of: 4) { try await checkPossiblyOlder(besides: found, "\(number)") }
      // All other keys are known to be lost.
      let unknown = Set(ExaminedImage.entries.keys).subtracting(found.keys).filter { key in
        !lost.contains { $0.contains(key) }
      }
      if Set(destroyed) == pages { #expect(unknown.isEmpty, "\(number): \(report.findings)") }
      let places = report.findings.filter { $0.place.contains("page") }.map(\.place)
      #expect(Set(places).count == places.count, "\(number)")
      let reachable = image.paths.values.contains { !$0.isDisjoint(with: destroyed) }
      #expect(!reachable || !report.findings.isEmpty, "\(number)")
      try await examination.store.close()
    }
  }
}
#endif
