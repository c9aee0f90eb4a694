#if Compression && LMDB
import Foundation
import Larder
import LarderCBOR
import LarderCompression
import LarderJSON
import LarderLMDB
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Codecs/LarderCompression/LarderCompression.docc/Compression.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct CompressionGuideTests {
  struct Article: Codable, Equatable {
    var text: String
  }

  struct User: Codable, Equatable {
    var name: String
    var email: String
    var number: Int

    init(_ number: Int) {
      name = "Ada Lovelace"
      email = "ada.lovelace.\(number)@example.org"
      self.number = number
    }
  }

  private let scratch: TemporaryFolder
  private var folder: String { scratch.path }

  init() throws {
    scratch = try TemporaryFolder()
  }

  @Test func `large values`() async throws {
    // snippet.values
    let articles = try await JSONFileStore<Article>(
      path: folder + "/articles.json", codec: .json(Article.self).compressed())
    // snippet.end
    let article = Article(text: String(repeating: "All that is said is said again. ", count: 100))
    try await articles.setValue(article, forKey: "1")
    #expect(try await articles["1"] == article)
    try await articles.close()
    #expect(try Data(contentsOf: URL(filePath: folder + "/articles.json")).count < 300)
    await expectStoreError(.versionMismatch) {
      try await JSONFileStore<Article>(path: folder + "/articles.json", codec: .json())
    }
  }

  @Test func `small values`() async throws {
    let samples = (0..<200).map(User.init)
    do {
      // snippet.dictionaries-2
      let file = CompressionDictionaries.path(besideStoreAt: folder + "/users")
      let dictionary = try CompressionDictionary.train(on: samples, codec: .cbor(User.self))
      let dictionaries = try await CompressionDictionaries.add(dictionary, toFile: file)
      let users = try await LMDBStore<User>(
        path: folder + "/users", codec: .cbor(User.self).compressed(dictionaries: dictionaries))
      // snippet.end
      try await users.setValue(User(1000), forKey: "user:1000")
      try await users.close()
    }

    let file = folder + "/users.dictionaries"
    let another = try CompressionDictionary.train(on: samples, codec: .cbor(), size: 100)
    #expect(try await CompressionDictionaries.add(another, toFile: file).all.count == 2)
    do {
      // snippet.dictionaries
      let users = try await LMDBStore<User>(
        path: folder + "/users",
        codec: .cbor(User.self).compressed(dictionaries: .read(fromFile: file)))
      // snippet.end
      try await users.setValue(User(1001), forKey: "user:1001")
      #expect(try users.value(forKey: "user:1000") == User(1000))
      #expect(try users.value(forKey: "user:1001") == User(1001))
      try await users.close()
    }

    let users = try await LMDBStore<User>(
      path: folder + "/users", codec: .cbor(User.self).compressed(dictionary: another))
    #expect(try users.value(forKey: "user:1001") == User(1001))
    let error = expectStoreError(.undecodable) { try users.value(forKey: "user:1000") }
    #expect((error?.underlying as? MissingDictionaryError)?.availableIDs == [another.id])
    try await users.close()
    await expectStoreError(.versionMismatch) { try await LMDBStore<User>(path: folder + "/users") }
  }
}
#endif
