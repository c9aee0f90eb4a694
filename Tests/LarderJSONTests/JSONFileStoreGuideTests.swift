import Larder
import LarderJSON
import TestSupport
import Testing

/// The piece of Swift in the guide `Docs/JSONFileStore.md`: it stands there as it stands here.
@Suite struct JSONFileStoreGuideTests {
  struct Setting: Codable, Equatable {
    var theme: String
  }

  struct User: Codable {
    var name: String
  }

  /// Opens the stores of the guide; it is there to be compiled, because their folders are not those of a test.
  private static func openStores() async throws -> [any DataStore] {
    let settings = try await JSONFileStore<Setting>(name: "settings")  // in the application's own folder
    let users = try await JSONFileStore<User>(path: "/srv/app/users.json")  // anywhere
    return [settings, users]
  }

  @Test func theGuideShowsThisCode() throws {
    let guide = try Guide("Docs/JSONFileStore.md")
    #expect(guide.pieces.count == 1)
    #expect(try guide.piecesMissing() == [])
  }
}
