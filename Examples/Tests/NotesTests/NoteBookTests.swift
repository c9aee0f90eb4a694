import Foundation
import Larder
import LarderCrypto
import LarderIndexes
import LarderObservation
import LarderTesting
import Testing

@testable import Notes

@Suite(.timeLimit(.minutes(5))) struct NoteBookTests {
  private let bytes = MemoryStore<[UInt8]>()

  private func titles(_ page: StorePage<Note>) -> [String] { page.entries.map(\.value.title) }

  @Test func `notes are listed newest first by tag and folder`() async throws {
    let book = try await NoteBook(bytes.observable())
    for number in 1...5 {
      _ = try await book.add("note \(number)", tags: number.isMultiple(of: 2) ? ["even"] : [], at: Int64(number))
    }
    #expect(titles(try await book.page(tag: "even")) == ["note 4", "note 2"])
    let first = try await book.page(size: 2)
    #expect(titles(first) == ["note 5", "note 4"])
    #expect(titles(try await book.page(size: 2, after: first.next)) == ["note 3", "note 2"])

    try await book.folders.setValue(Folder(color: "blue"), forKey: "work")
    try await book.move(["1", "3"], to: "work")
    #expect(titles(try await book.page(folder: "work")) == ["note 3", "note 1"])
    #expect(titles(try await book.page(folder: Folder.inbox)) == ["note 5", "note 4", "note 2"])
  }

  @Test func `a move to a missing folder or of a missing note changes nothing`() async throws {
    let book = try await NoteBook(bytes.observable())
    let key = StoreKey(try await book.add("note", tags: [], at: 1))
    await #expect(throws: NoteError.missingFolder("work")) { try await book.move([key], to: "work") }
    try await book.folders.setValue(Folder(color: "blue"), forKey: "work")
    await #expect(throws: NoteError.missingNote("7")) { try await book.move([key, "7"], to: "work") }
    #expect(try await book.notes.value(forKey: key)?.folder == Folder.inbox)
  }

  @Test func `encrypted notes need their keys`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "notes-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let ring = try await KeyRing.open(in: .file(folder.path + "/keys.json"), createsIfMissing: true)
    let other = try await KeyRing.open(in: .file(folder.path + "/other.json"), createsIfMissing: true)
    let book = try await NoteBook(bytes.observable(), keys: ring)
    _ = try await book.add("secret", tags: ["home"], at: 1)
    #expect(titles(try await book.page(tag: "home")) == ["secret"])
    for try await entry in bytes.entries(in: .all) {
      #expect(!String(decoding: entry.value, as: UTF8.self).contains("secret"))
    }
    let locked = try await NoteBook(bytes.observable(), keys: other)
    await #expect { try await locked.page() } throws: { ($0 as? StoreError)?.code == .keyUnavailable }
    #expect(titles(try await book.page()) == ["secret"])
  }

  @Test func `two notes of one moment get two keys`() async throws {
    let book = try await NoteBook(bytes.observable())
    #expect(try await book.add("a", tags: [], at: 1) == "1")
    #expect(try await book.add("b", tags: [], at: 1) == "2")
  }

  @Test func `notes of version one are read and migrated`() async throws {
    let old = try bytes.typed(NoteV1.self, prefix: "v/", codec: .json().versioned(1))
    try await old.setValue(
      NoteV1(title: "old", tags: "home, car", created: Date(timeIntervalSince1970: 7)), forKey: "7000")
    let book = try await NoteBook(bytes.observable())
    let expected = Note(title: "old", folder: Folder.inbox, tags: ["home", "car"], created: 7000)
    #expect(try await book.page(tag: "car").entries.map(\.value) == [expected])
    #expect(try await book.notes.migrateAll().examinedCount == 1)
    #expect(String(decoding: try #require(try bytes.value(forKey: "v/7000")), as: UTF8.self).contains("\"$version\":2"))
    #expect(try await book.notes.verifyIndexes().findings.isEmpty)
  }

  @Test func `a failed write leaves notes and indexes as they were`() async throws {
    let faulty = bytes.faulty()
    let book = try await NoteBook(faulty.observable())
    _ = try await book.add("first", tags: ["a"], at: 1)
    faulty.schedule(.error(.full), on: .update)
    await #expect(throws: StoreError.self) { try await book.add("second", tags: ["a"], at: 2) }
    #expect(titles(try await book.page(tag: "a")) == ["first"])
    #expect(try await book.notes.verifyIndexes().findings.isEmpty)
  }

  @Test func `a watcher sees a note that is added while the first page is shown`() async throws {
    let store = bytes.observable()
    let book = try await NoteBook(store)
    var pages: [[String]] = []
    try await book.watch(size: 10) { entries in
      pages.append(entries.map(\.value.title))
      if pages.count == 1 {
        _ = try await book.add("note", tags: [], at: 1)
      } else {
        try await store.close()
      }
    }
    #expect(pages == [[], ["note"]])
  }
}
