#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderBounded
import LarderJSON
import LarderLMDB
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/Comparison.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct ComparisonGuideTests {
  private struct User: Codable, Equatable {
    var name: String
  }

  private struct Preferences: Codable, Equatable {
    var name: String
    var volume: Double
  }

  private let temporary: TemporaryFolder
  private let folder: String

  init() throws {
    temporary = try TemporaryFolder()
    folder = temporary.path("data")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  }

  @Test func `values move from UserDefaults`() async throws {
    let name = "larder-tests-\(UUID())"
    let defaults = try #require(UserDefaults(suiteName: name))
    defer { defaults.removePersistentDomain(forName: name) }
    defaults.set(try JSONEncoder().encode(User(name: "Ada")), forKey: "profile.ada")
    defaults.set(3, forKey: "profile.count")
    defaults.set(Data("1".utf8), forKey: "launches")
    defaults.set("Ada", forKey: "name")
    defaults.set(0.5, forKey: "volume")

    // snippet.from-userdefaults-2
    let preferences = try await JSONFileStore<Preferences>(path: folder + "/preferences.json")
    let old = Preferences(name: defaults.string(forKey: "name") ?? "", volume: defaults.double(forKey: "volume"))
    try await preferences.setValue(old, forKey: "preferences")
    // snippet.end

    #expect(try await preferences["preferences"] == Preferences(name: "Ada", volume: 0.5))
    try await preferences.close()

    // snippet.from-userdefaults
    let settings = try await JSONFileStore(path: folder + "/settings.json", codec: .jsonText)
    var batch = ChangeBatch<JSONText>()
    for (name, value) in defaults.dictionaryRepresentation() where name.hasPrefix("profile.") {
      guard let data = value as? Data else { continue }
      batch.setValue(try JSONText(String(decoding: data, as: UTF8.self)), forKey: StoreKey(name))
    }
    try await settings.apply(batch)
    try await settings.close()
    // snippet.end

    let typed = try await JSONFileStore<User>(path: folder + "/settings.json")
    #expect(
      try await typed.entries(in: .all, limit: 9) == [StoreEntry(key: "profile.ada", value: User(name: "Ada"))])
    try await typed.close()
  }

  @Test func `files move from a folder`() async throws {
    let old = temporary.path("old")
    try FileManager.default.createDirectory(atPath: old, withIntermediateDirectories: false)
    for number in 0..<1001 {
      try JSONEncoder().encode(User(name: "\(number)")).write(to: URL(filePath: "\(old)/\(number).json"))
    }

    // snippet.from-a-folder-of-files
    let users = try await LMDBStore<User>(path: folder + "/users")
    var pending = ChangeBatch<User>()
    for name in try FileManager.default.contentsOfDirectory(atPath: old) where name.hasSuffix(".json") {
      let data = try Data(contentsOf: URL(filePath: old).appending(path: name))
      pending.setValue(try JSONDecoder().decode(User.self, from: data), forKey: StoreKey(String(name.dropLast(5))))
      if pending.count == 1000 {
        try await users.apply(pending)
        pending = ChangeBatch()
      }
    }
    try await users.apply(pending)
    // snippet.end

    #expect(try await users.count() == 1001)
    #expect(try users.value(forKey: "1000") == User(name: "1000"))
    try await users.close()
  }

  @Test func `caches fill themselves`() async throws {
    // snippet.from-bodega-or-hyperoslo-cache
    let images = try await LMDBStore(path: folder + "/images", codec: .raw).bounded(bytes: 200_000_000)
    // snippet.end
    try await images.setValue([1], forKey: "a")
    #expect(try await images.usage().entries == 1)
    try await images.close()
  }
}
#endif
