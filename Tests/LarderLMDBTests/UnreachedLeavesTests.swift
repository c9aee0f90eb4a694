#if LMDB
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// Entries below destroyed branch pages.
@Suite(.timeLimit(.minutes(20))) struct UnreachedLeavesTests {
  private static let formats = DataFileFormat.all.filter { ExaminedImage.obstacle($0) == nil }

  private let folder: TemporaryFolder
  private var path: String { folder.path("environment") }

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("environment"), withIntermediateDirectories: false)
  }

  /// Writes a data file in which some pages have only zeros.
  private func write(_ bytes: [UInt8], destroying pages: [UInt64]) throws {
    var bytes = bytes
    for page in pages {
      for place in 0..<ExaminedImage.pageSize { bytes[Int(page) * ExaminedImage.pageSize + place] = 0 }
    }
    try ExaminedImage.write(bytes, to: path)
  }

  private func salvage(
    findsPossiblyOlder: Bool = false
  ) async throws -> (entries: [StoreKey: [UInt8]], lost: [KeyRange], report: VerificationReport) {
    let examination = try await Examination(path, findsPossiblyOlder: findsPossiblyOlder)
    let report = try #require(try await examination.store.maintenance?.verify())
    let (entries, lost) = try await examination.salvage()
    if lost.isEmpty {
      let keys = try await examination.store.keys(in: .all, limit: .max, order: .descending)
      #expect(keys == entries.map(\.key).reversed())
    }
    try await examination.store.close()
    return (Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) }), lost, report)
  }

  @Test(arguments: formats) func `a destroyed branch page costs nothing`(_ format: DataFileFormat) async throws {
    let image = try await ExaminedImage.make(format)
    #expect(image.branches.count > 2)
    for page in image.branches.sorted() {
      try write(image.bytes, destroying: [page])
      let found = try await salvage()
      #expect(found.entries == ExaminedImage.entries)
      #expect(found.lost.isEmpty)
      #expect(found.report.entryCount == ExaminedImage.number)
      #expect(found.report.findings.map(\.place) == ["environment, page \(page)"])
      #expect(found.report.findings.first?.message.hasSuffix("; all entries below it were found") == true)
    }
    let branches = image.branches.sorted()
    try write(image.bytes, destroying: branches)
    #expect(try await salvage().entries == ExaminedImage.entries)
  }

  /// Without a page above the leaves, it is unknown which keys lie between them.
  @Test(arguments: formats) func `a leaf that is destroyed too is a gap`(_ format: DataFileFormat) async throws {
    let image = try await ExaminedImage.make(format)
    let root = try #require(image.roots["default"])
    // The path of an entry without a large value ends with its leaf, and begins with pages of all entries.
    let shared = image.paths.values.reduce(image.paths.values.first ?? []) { $0.intersection($1) }
    let path = try #require(image.paths[image.paths.keys.sorted()[301]])
    let leaf = try #require(path.subtracting(shared).subtracting(image.branches).first)
    try write(image.bytes, destroying: [root, leaf])
    let found = try await salvage()
    let lost = image.paths.filter { $0.value.contains(leaf) }
    #expect(!lost.isEmpty && found.entries == ExaminedImage.entries.filter { lost[$0.key] == nil })
    #expect(lost.keys.allSatisfy { key in found.lost.contains { $0.contains(key) } })
    let messages = found.report.findings.map(\.message)
    #expect(messages.contains { $0.hasSuffix("; entries below it were found, but some may be missing") }, "\(messages)")
  }

  /// Which leaves are free is unknown then, and free ones have older entries.
  @Test(arguments: formats) func `entries that may be older are found on request only`(_ format: DataFileFormat)
    async throws
  {
    let image = try await ExaminedImage.make(format)
    let root = try #require(image.roots["default"])
    let freeListRoot = try #require(image.freeListPages.min())
    for pages in [[root, try #require(image.roots["other"])], [root, freeListRoot]] {
      try write(image.bytes, destroying: pages)
      let certain = try await salvage()
      #expect(certain.entries.isEmpty && certain.lost == [.all])
      let message = certain.report.findings.map(\.message).joined()
      #expect(message.contains("may also be older or of another named database"), "\(message)")
      let all = try await salvage(findsPossiblyOlder: true)
      let differences = ExaminedImage.entries.filter { all.entries[$0.key] != $0.value }.map(\.key)
      #expect(differences.isEmpty && !all.lost.isEmpty)
      // The list of codecs is a database, too.
      #expect(Set(all.entries.keys).subtracting(ExaminedImage.entries.keys).isSubset(of: ["default", "other"]))
    }
  }

  /// Each transaction writes a new list of databases, and leaves the state before as it was.
  @Test(arguments: formats) func `without the list of databases the state before is read`(_ format: DataFileFormat)
    async throws
  {
    let image = try await ExaminedImage.make(format)
    try write(image.bytes, destroying: [])
    let root = try #require(try DataFileReader(path + "/data.mdb", store: "store").latestSnapshot().meta.main.root)
    try write(image.bytes, destroying: [root])
    await expectStoreError(.corrupted) { try await salvage() }
    let found = try await salvage(findsPossiblyOlder: true)
    #expect(found.entries == ExaminedImage.entries && found.lost.isEmpty)
  }

  /// The file has several older copies of each leaf, which are free.
  @Test func `an older copy replaces nothing`() async throws {
    let keys = (0..<2000).map { StoreKey(integer: $0) }
    let created = folder.path("created")
    let store = try await LMDBStore<[UInt8]>(path: created, codec: .raw, durability: .buffered)
    for round in 0..<5 as Range<UInt8> {
      // Several transactions, so that few pages are reused.
      for start in stride(from: 0, to: 2000, by: 500) {
        let entries = keys[start..<start + 500].map { ($0, [UInt8](repeating: round, count: 100)) }
        try await store.apply(ChangeBatch(entries.map { .set($0.0, $0.1) }))
      }
    }
    try await store.apply(ChangeBatch((0..<2000).filter { $0.isMultiple(of: 3) }.map { .remove(keys[$0]) }))
    try await store.close()
    let snapshot = try DataFileReader(created + "/data.mdb", store: "store").latestSnapshot()
    let root = try #require(try snapshot.database(named: "default", store: "store", during: .read)?.root)
    let bytes = try Array(Data(contentsOf: URL(filePath: created + "/data.mdb")))
    try write(bytes, destroying: [root])
    let found = try await salvage()
    #expect(found.lost.isEmpty && found.entries.count == 1333)
    #expect(found.entries.values.allSatisfy { $0 == [UInt8](repeating: 4, count: 100) })
    // With the list of free pages destroyed, too, there are others, but not among the certain ones.
    let freeListRoot = try #require(snapshot.meta.freePages.root)
    try write(bytes, destroying: [root, freeListRoot])
    #expect(try await salvage().entries.isEmpty)
    let all = try await salvage(findsPossiblyOlder: true)
    #expect(all.entries.count > 1333)
    if DataFileFormat.linked != .version1 {
      // The pages of LMDB 1.0 have the number of their transaction.
      let newest = all.entries.filter { $0.value == [UInt8](repeating: 4, count: 100) }
      #expect(Set(found.entries.keys).isSubset(of: newest.keys))
    }
  }
}
#endif
