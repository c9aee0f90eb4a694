import Larder
import LarderFiles
import TestSupport
import Testing

/// A location such as `shop#orders` names one store, or none if it could name two.
@Suite struct StoreLocationTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func location(_ location: String) throws -> StoreLocation {
    try StoreLocation(of: StoreURL("notes:\(location)"), defaultName: "main", whereStoresExist: StoreLocation.exists)
  }

  @Test func `the last number sign begins the name`() throws {
    for (text, path, name) in [
      ("shop", "shop", "main"), ("shop#orders", "shop", "orders"), ("build#7#main", "build#7", "main"),
      // With a combining mark, the sign is another character.
      ("shop#\u{301}orders", "shop", "\u{301}orders"),
    ] {
      let found = try location(text)
      #expect(found.path == path && found.name == name, "\(text)")
    }
  }

  @Test(arguments: ["", "#orders", "shop#", "#"]) func `a part that is empty is refused`(text: String) {
    let error = expectStoreError(.invalidArgument) { try location(text) }
    #expect(error?.message.contains("notes:shop#orders") == true)
  }

  @Test func `a location that could be a path is refused with both ways to write it`() throws {
    let path = folder.path("build#7")
    try POSIXFileSystem().createDirectory(at: path)
    let error = expectStoreError(.invalidArgument) { try location(path) }
    #expect(error?.message.contains("notes:\(path)#main") == true)
    #expect(error?.message.contains("notes:\(folder.path("build"))/#7") == true)
    #expect(try location(path + "#main").path == path)
    // No stores exist at the path, so the sign could belong to the folder of a file that is still to be created.
    expectStoreError(.invalidArgument) { try location(folder.path("other#1/notes")) }
  }
}
