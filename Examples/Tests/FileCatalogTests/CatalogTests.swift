import Foundation
import Larder
import Testing

@testable import FileCatalog

@Suite("The catalog of a folder")
struct CatalogTests {
  @Test func `A walk is in the byte order of paths, including names that are not UTF-8, and follows no link`() throws {
    let folder = try TemporaryFolder()
    try folder.makeFile("a/c")
    try folder.makeFile("a.b")
    try folder.makeFile("a0")
    try folder.makeLink("link", to: "a")
    #if os(Linux)
    try folder.makeFile([0x80])
    #endif
    let paths = try FolderWalk(root: folder.path).map(\.key)
    var expected: [StoreKey] = ["a", "a.b", "a/c", "a0", "link"]
    #if os(Linux)
    expected.append(StoreKey(bytes: [0x80]))
    #endif
    #expect(paths == expected)
  }

  @Test func `A second run writes only differences and removes missing entries`() async throws {
    let folder = try TemporaryFolder()
    for number in 0..<2500 {
      try folder.makeFile("folder/\(number)")
    }
    let store = MemoryStore<FileRecord>()
    let catalog = Catalog(store: store)
    let filling = try await catalog.update(from: walk(folder)) { seen in
      // Full batches are written as soon as they are full, and each only once.
      try #require(store.count(in: .all) == seen / 1000 * 1000)
    }
    #expect(filling == CatalogChanges(added: 2501))

    try folder.makeFile("new")
    try folder.makeFile("folder/7", content: "longer")
    try folder.remove("folder/8")
    let changes = try await catalog.update(from: walk(folder)) { _ in }
    // The folder has changed as well, because a name in it was removed.
    #expect(changes == CatalogChanges(added: 1, changed: 2, removed: 1, unchanged: 2498))
    #expect(try store.value(forKey: "folder/7")?.size == 6)
    #expect(try store.entries(in: .all, limit: .max, order: .ascending) == Array(walk(folder)))
  }

  @Test func `Entries in an unreadable folder are kept, and paths that are too long for a key are counted`() throws {
    var problems = WalkProblems()
    problems.noteUnreadable("closed/", SystemError(code: EACCES))
    problems.noteUnreadable("odd", SystemError(code: EIO))
    #expect(problems.mayHide("closed/a/b"))
    #expect(problems.mayHide("odd") && problems.mayHide("odd/a"))
    #expect(!problems.mayHide("closed") && !problems.mayHide("closed.a") && !problems.mayHide("odder"))

    let folder = try TemporaryFolder()
    let name = String(repeating: "n", count: 200)
    try folder.makeFile("\(name)/\(name)/\(name)")
    let walk = try walk(folder)
    #expect(walk.reduce(0) { count, _ in count + 1 } == 2)
    #expect(walk.problems.tooLongCount == 1)
  }

  @Test func `A missing folder cannot be walked`() {
    #expect(throws: SystemError(code: ENOENT)) { try FolderWalk(root: "/nowhere/at/all") }
  }

  private func walk(_ folder: TemporaryFolder) throws -> FolderWalk {
    try FolderWalk(root: folder.path)
  }
}
