#if LMDB
import Foundation
import Larder
import LarderCBOR
import LarderIndexes
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderIndexes/LarderIndexes.docc/UsingIndexes.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct IndexesGuideTests {
  private struct Note: Codable, Equatable {
    var title: String
    var slug: String
    var tags: [String]
    var created: Date
  }

  private let start = Date(timeIntervalSince1970: 1_767_225_600)
  private let end = Date(timeIntervalSince1970: 1_769_904_000)

  @Test func `notes by tag`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder

    // snippet.overview
    let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }
    let bySlug = StoreIndex<Note>("slug", isUnique: true) { _, note in [[note.slug]] }

    let bytes = try await LMDBStore(path: folder + "/notes", codec: .raw)
    let notes = try await bytes.indexed(by: [byTag, bySlug], codec: .cbor(Note.self))
    try await notes.rebuildIndexes()
    // snippet.end

    for number in 0..<30 {
      let slug = number == 0 ? "hello" : "note-\(number)"
      let created = start.addingTimeInterval(Double(number) * 86_400 * 2)
      try await notes.setValue(
        Note(title: slug.capitalized, slug: slug, tags: ["swift"], created: created), forKey: StoreKey("\(number)"))
    }

    // snippet.queries-2
    let page = try await notes.page(where: byTag, in: .prefix(components: "swift"), order: .descending)
    for entry in page.entries { print(entry.key, entry.value.title) }
    if let next = page.next {
      let second = try await notes.page(
        where: byTag, in: .prefix(components: "swift"), order: .descending, after: next)
      print(second.entries.count)
    }
    // snippet.end

    // snippet.queries
    let january = StoreKey(components: "swift", start)..<StoreKey(components: "swift", end)
    let notesOfJanuary = try await notes.entries(where: byTag, in: january, limit: 100)
    let count = try await notes.count(where: byTag, in: .prefix(components: "swift"))
    let note = try await notes.entries(where: bySlug, in: .prefix(components: "hello"), limit: 1).first?.value
    // snippet.end
    #expect(page.entries.first?.key == "29" && page.entries.count == 20)
    let rest = try await notes.page(
      where: byTag, in: .prefix(components: "swift"), order: .descending, after: page.next)
    #expect(rest.entries.map(\.key) == (0..<10).reversed().map { StoreKey("\($0)") })
    #expect(notesOfJanuary.count == 16)
    #expect(count == 30)
    #expect(note?.title == "Hello")

    let folders = bytes.typed(String.self, prefix: "folder/", codec: .cbor())
    try await folders.setValue("Archive", forKey: "archive")
    // snippet.changing-several-entries
    try await bytes.transaction { tx in
      guard try await tx.contains("archive", in: folders) else { return .discard(false) }
      try await tx.update("7", in: notes) { $0?.tags = ["archived"] }
      return .commit(true)
    }
    // snippet.end
    #expect(try await notes.count(where: byTag, in: .prefix(components: "archived")) == 1)

    // snippet.changing-several-entries-2
    try await notes.update(["7", "8"]) { slots in
      for index in slots.indices { slots[index]?.tags.append("swift") }
    }
    // snippet.end
    #expect(try await notes.count(where: byTag) == 31)

    // snippet.new-and-changed-indexes
    let byTagAndTitle = StoreIndex<Note>("tag", version: 2) { _, note in note.tags.map { [$0, note.title] } }
    // snippet.end
    let changed = try await bytes.indexed(by: [byTagAndTitle, bySlug], codec: .cbor(Note.self))
    #expect(try await changed.incompleteIndexes() == ["tag"])
    #expect(try await changed.rebuildIndexes().entryCount == 30)
    #expect(try await changed.entries(where: byTagAndTitle, limit: 1).first?.key == "7")
    try await bytes.close()
    try location.remove()
  }

  @Test func `verification and repair`() async throws {
    let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }
    let bytes = MemoryStore<[UInt8]>()
    let notes = try await bytes.indexed(by: [byTag], codec: .json(Note.self))
    try await notes.setValue(Note(title: "a", slug: "a", tags: ["x"], created: start), forKey: "1")
    try bytes.apply([.remove("v/1")])

    // snippet.verification-and-repair
    let report = try await notes.verifyIndexes()
    for finding in report.findings { print(finding.place, finding.message) }
    if !report.findings.isEmpty { try await notes.rebuildIndexes(fromScratch: true) }
    // snippet.end

    #expect(report.findings.count == 1)
    #expect(try await notes.verifyIndexes().findings.isEmpty)
    #expect(try bytes.keys(in: .all, limit: 9, order: .ascending) == ["i/catalog"])

    let plain = bytes.typed(Note.self, prefix: "note/", codec: .json())
    try await plain.setValue(Note(title: "a", slug: "a", tags: ["x"], created: start), forKey: "1")
    // snippet.adopting-existing-values
    let adopted = try await bytes.indexed(
      by: [byTag], codec: .json(Note.self), valuePrefix: "note/", indexPrefix: "note-index/")
    try await adopted.rebuildIndexes()
    // snippet.end
    #expect(try await adopted.count(where: byTag) == 1)
    #expect(try await notes.verifyIndexes().findings.isEmpty)
  }

  @Test func `the sample moves a note`() async throws {
    let location = try ConformanceLocation()
    let library = try await NoteLibrary(path: location.path("notes"))
    for number in 0..<30 {
      let note = NoteLibrary.Note(
        text: "\(number)", tags: number.isMultiple(of: 3) ? ["swift", "ios"] : ["swift"],
        created: start.addingTimeInterval(Double(number)))
      try await library.add(note, id: "\(number)", to: "inbox")
    }
    let first = try await library.newest(tagged: "swift")
    #expect(first.entries.first?.key == "inbox/29" && first.entries.count == 20)
    #expect(try await library.move("7", from: "inbox", to: "archive"))
    #expect(try await !library.move("7", from: "inbox", to: "archive"))
    let second = try await library.newest(tagged: "swift", after: first.next)
    #expect(second.entries.count == 10 && second.next == nil)
    #expect(second.entries.filter { $0.key == "archive/7" }.map(\.value.text) == ["7"])
    #expect(try await library.notes(in: "archive").map(\.text) == ["7"])
    #expect(try await library.notes(in: "inbox").count == 29)
    #expect(try await library.newest(tagged: "ios").entries.count == 10)
    try await library.close()
    try location.remove()
  }

  /// The records of the article about the format.
  @Test func `the format is as described`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let old = StoreIndex<String>("tag") { _, text in [[text]] }
    let byTag = StoreIndex<String>("tag", version: 2) { _, text in [[text, text.count]] }
    let texts = try await bytes.indexed(by: [old], codec: .json(String.self))
    try await texts.setValue("b", forKey: "k")
    let changed = try await bytes.indexed(by: [byTag], codec: .json(String.self))
    try await changed.setValue("a", forKey: "k")
    // The old entry is still there, and the new index is incomplete.
    let key = StoreKey(bytes: Array("i/".utf8) + StoreKey(components: 2, "a", 1, KeyComponent.bytes([0x6B])).bytes)
    #expect(try bytes.count(in: .prefix("i/")) == 4)
    #expect(try bytes.value(forKey: key) == [])
    let item = StoreKey(components: 2, "a", 1).bytes
    #expect(try bytes.value(forKey: "i/ek") == [0, UInt8(item.count)] + item)
    #expect(try bytes.value(forKey: "v/k") == Array(#""a""#.utf8))
    let page = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Modules/Decorators/LarderIndexes/LarderIndexes.docc/IndexFormat.md"), encoding: .utf8)
    let catalog = try bytes.value(forKey: "i/catalog").map { String(decoding: $0, as: UTF8.self) }
    #expect(page.contains(try #require(catalog).replacing(#""isComplete":false"#, with: #""isComplete":true"#)))
    try await changed.rebuildIndexes()
    #expect(try bytes.count(in: .prefix("i/")) == 3)
    // A value that cannot be decoded.
    try bytes.apply([.set("v/k", [0]), .set("v/l", Array(#""l""#.utf8))])
    let again = try await bytes.indexed(by: [old], codec: .json(String.self))
    #expect(try await again.rebuildIndexes().findings.map(\.key) == ["k"])
    #expect(try bytes.value(forKey: "i/uk") == [])
    let progress = StoreKey(bytes: Array("i/progress".utf8) + StoreKey(components: 3).bytes)
    #expect(try bytes.value(forKey: progress) == [])
    #expect(page.contains(#""undecodableCount":0"#))
  }
}
#endif
