import Larder
import LarderJSON
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Stores/LarderJSON/LarderJSON.docc/UsingJSONFileStore.md`, and the first of the README.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct JSONFileStoreGuideTests {
  struct Setting: Codable, Equatable {
    var theme: String
  }

  struct User: Codable {
    var name: String
  }

  /// Opens the stores of the guide.
  ///
  /// This is only compiled, because their folders are not those of a test.
  private static func openStores() async throws -> [any DataStore] {
    // snippet.overview-2
    let settings = try await JSONFileStore<Setting>(name: "settings")  // in the application's own folder
    let users = try await JSONFileStore<User>(path: "/srv/app/users.json")  // anywhere
    // snippet.end
    return [settings, users]
  }

  /// The first sample of the README.
  ///
  /// This is only compiled, because its file is in the folder of the process.
  private static func firstSample() async throws {
    // snippet.overview
    struct User: Codable, Sendable {
      var name: String
      var visits = 0
    }
    let users = try await JSONFileStore<User>(path: "users.json")
    try await users.setValue(User(name: "Ada"), forKey: "user:1")
    try await users.update("user:1") { $0?.visits += 1 }
    for try await entry in users.entries(in: .prefix("user:")) {
      print(entry.key, entry.value.name)
    }
    // snippet.end
  }
}
