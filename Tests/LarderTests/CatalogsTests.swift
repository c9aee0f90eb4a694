import Foundation
import Larder
import TestSupport
import Testing

/// The landing pages of the modules.
///
/// The code of each page appears in an article of the same catalog, whose code has a test of its own, or in this file.
@Suite struct CatalogsTests {
  struct User: Codable, Sendable {
    var name: String
    var visits = 0
  }

  private static let repository = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")

  /// The paths of the catalogs in the repository.
  private static func catalogs() throws -> [String] {
    let modules = repository.appending(path: "Modules").standardizedFileURL.path
    return try FileManager.default.subpathsOfDirectory(atPath: modules).filter { $0.hasSuffix(".docc") }
      .map { "Modules/" + $0 }.sorted()
  }

  @Test func `a few calls of a store`() async throws {
    // snippet.overview
    let store = MemoryStore<User>()

    try await store.setValue(User(name: "Ada"), forKey: "user:1")
    try await store.apply([.set("user:2", User(name: "Bob")), .remove("guest:7")])

    let visits = try await store.update("user:1") { user in
      user?.visits += 1
      return user?.visits
    }
    print("visits of user:1:", visits ?? 0)

    for try await entry in store.entries(in: .prefix("user:")) {
      print(entry.key, entry.value.name)
    }
    // snippet.end

    #expect(visits == 1)
    #expect(try store.count(in: .all) == 2)
  }

  @Test func `the code of each page is tested`() throws {
    let catalogs = try CatalogsTests.catalogs()
    #expect(catalogs.count >= 13)
    for catalog in catalogs {
      let module = URL(filePath: catalog).deletingPathExtension().lastPathComponent
      // The code of these pages is in this file and in LarderFilesTests.
      if ["Larder", "LarderFiles"].contains(module) { continue }
      let folder = CatalogsTests.repository.appending(path: catalog).path
      let articles = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
        $0.hasSuffix(".md") && $0 != "\(module).md"
      }
      let tested = try articles.flatMap { try Guide("\(catalog)/\($0)").pieces }
      let shown = try Guide("\(catalog)/\(module).md").pieces
      #expect(!shown.isEmpty, "\(module)")
      #expect(shown.filter { !tested.contains($0) } == [], "\(module)")
    }
  }

  /// Every code block in Swift, of every page, is part of a test or an example, or of a package that
  /// `Scripts/prove-isolation` builds.
  @Test func `the code of every page is compiled`() throws {
    // The blocks of `Scripts/prove-isolation`, by how they begin.
    let built = [
      "README.md": "// swift-tools-version", "GettingStarted.md": "import Larder",
      "WritingAStore.md": "// swift-tools-version", "WritingADecorator.md": "// swift-tools-version",
    ]
    let root = CatalogsTests.repository.standardizedFileURL.path
    let tree = try #require(
      FileManager.default.enumerator(
        at: URL(filePath: root), includingPropertiesForKeys: nil, options: .skipsHiddenFiles))
    let files = tree.compactMap { ($0 as? URL).map { String($0.path.dropFirst(root.count)) } }
    let compiled = try files.filter { $0.wholeMatch(of: #/.*/(Tests|Examples)/.*\.swift/#) != nil }
      .map { try Guide.unindented(String(contentsOfFile: root + "/" + $0, encoding: .utf8)) }
    // By their lines, because a search in all files for each block would take a quarter of a minute. A block that begins
    // within a line is looked for everywhere.
    var places: [Substring: [String]] = [:]
    for text in compiled {
      for line in Set(text.split(separator: "\n")) { places[line, default: []].append(text) }
    }
    let pages = files.filter { $0.hasSuffix(".md") }
    #expect(compiled.count > 300 && pages.count > 60)
    for page in pages {
      let exception = built[URL(filePath: page).lastPathComponent]
      for block in try Guide(page).pieces where exception.map({ !block.hasPrefix($0) }) ?? true {
        let code = Guide.unindented(block)
        let candidates = code.split(separator: "\n").first.flatMap { places[$0] } ?? []
        let isTested = (candidates + compiled).contains { $0.contains(code) }
        #expect(isTested, "\(page): no test contains this code:\n\(block)")
      }
    }
  }
}
