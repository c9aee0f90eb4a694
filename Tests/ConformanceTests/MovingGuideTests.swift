#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderJSON
import LarderLMDB
import LarderMirror
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderMirror/LarderMirror.docc/MovingStores.md`.
@Suite struct MovingGuideTests {
  struct Note: Codable, Equatable {
    var title: String
  }

  @Test func `a store at rest`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let filled = try await JSONFileStore<Note>(path: folder + "/old.json")
    try await filled.setValue(Note(title: "Buy milk"), forKey: "1")
    try await filled.close()

    // snippet.a-store-at-rest
    let old = try await JSONFileStore<Note>(path: folder + "/old.json")
    let new = try await LMDBStore<Note>(path: folder + "/new")
    let outcome = try await old.copy(to: new) { progress in
      print("\(progress.copiedCount) copied")
    }
    // snippet.end

    #expect(outcome.copiedCount == 1)
    #expect(try new.value(forKey: "1") == Note(title: "Buy milk"))
    try await old.close()
    try await new.close()
    try location.remove()
  }

  @Test func `a store in use`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let filled = try await JSONFileStore<Note>(path: folder + "/notes.json")
    try await filled.setValue(Note(title: "Buy milk"), forKey: "1")
    try await filled.close()

    // snippet.overview
    let notes = try await MirroredStore(
      primary: JSONFileStore<Note>(path: folder + "/notes.json"),
      secondary: LMDBStore<Note>(path: folder + "/notes"))

    try await notes.repair()  // copies, while the program reads and writes
    try await notes.forEachDifference { print("\($0.key) differs") }
    try await notes.promoteSecondary()  // LMDB is read from now on, and JSON follows
    // snippet.end

    #expect(notes.isSwitched)
    #expect(try notes.secondary.value(forKey: "1") == Note(title: "Buy milk"))
    try await notes.close()
    try location.remove()
  }
}
#endif
