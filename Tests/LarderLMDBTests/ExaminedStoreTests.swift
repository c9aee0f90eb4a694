#if LMDB
import Foundation
import Larder
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

  // MARK: Damage

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
