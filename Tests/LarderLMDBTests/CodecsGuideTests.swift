#if LMDB
import Larder
import LarderCBOR
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

struct User: Codable, Sendable {
  var name: String
  var visits: Int?
}

// snippet.parts-of-any-type
struct Message: Codable {
  var sender: String
  var payload: CBORItem
}
// snippet.end

/// The Swift code of the guides `Modules/Codecs/LarderCBOR/LarderCBOR.docc/CBOR.md` and
/// `Modules/Larder/Larder.docc/Codecs.md`.
///
/// It must appear there unchanged, and it must work.
@Suite struct CodecsGuideTests {
  struct Note: Codable, Equatable {
    var text: String
  }

  struct Settings: Codable, Equatable {
    var theme: String
  }

  enum Level: Int, Codable {
    case low, high
  }

  @Test func `a type that writes itself`() throws {
    let codec: CBORCodec<[User]> = .cbor()
    var bytes: [UInt8] = []
    try codec.encode([User(name: "Ada", visits: 7)], into: &bytes)
    print(bytes.count)
    print(try codec.decode(bytes.span.bytes)[0].name)
    #expect(bytes.count == 19)
    #expect(try codec.decode(bytes.span.bytes)[0].name == "Ada")
  }

  @Test func `an enumeration that writes itself`() throws {
    var bytes: [UInt8] = []
    try CBORCodec<[Level]>().encode([.low, .high], into: &bytes)
    #expect(bytes == [0x82, 0, 1])
    #expect(try CBORCodec<[Level]>().decode(bytes.span.bytes) == [.low, .high])
  }

  @Test func options() throws {
    // snippet.options
    let codec: CBORCodec<Note> = .cbor(options: CBOROptions(userInfo: [.author: "Ada"], sortsKeys: true))
    // snippet.end

    var bytes: [UInt8] = []
    try codec.encode(Note(text: "x"), into: &bytes)
    #expect(try codec.decode(bytes.span.bytes) == Note(text: "x"))
  }

  @Test func `views of a store of bytes`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder

    // snippet.several-types-in-one-store-2
    let bytes = try await LMDBStore(path: folder + "/session", codec: .raw)
    let users = bytes.typed(User.self, prefix: "user/")  // CBOR, by LarderCBOR
    let notes = bytes.typed(Note.self, prefix: "note/", codec: .json())
    // snippet.end

    try await users.setValue(User(name: "Ada", visits: 7), forKey: "7")
    try await notes.setValue(Note(text: "x"), forKey: "7")
    #expect(try bytes.keys(in: .all, limit: 9, order: .ascending) == ["note/7", "user/7"])
    #expect(try await users["7"]?.visits == 7)
    #expect(try await notes["7"] == Note(text: "x"))
    #expect(try await bytes["note/7"] == Array(#"{"text":"x"}"#.utf8))
    try await bytes.close()
    try location.remove()
  }

  @Test func `a view that records its codec`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let codec = CBORCodec<User>()

    // snippet.several-types-in-one-store
    let users = try await bytes.typed(User.self, prefix: "user/", recording: codec)
    // snippet.end

    try await users.setValue(User(name: "Ada", visits: 7), forKey: "7")
    #expect(try bytes.value(forKey: "user/") == Array("cbor".utf8))
    #expect(try await users.count() == 1)
  }

  @Test func `views in the readme`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder

    let bytes = try await LMDBStore(path: folder + "/session", codec: .raw)
    let users = bytes.typed(User.self, prefix: "user/")
    let settings = bytes.typed(Settings.self, prefix: "settings/")
    try await settings.setValue(Settings(theme: "dark"), forKey: "7")  // kept under "settings/7"

    #expect(try await bytes.contains("settings/7"))
    #expect(try await users.count() == 0)
    #expect(try await settings["7"] == Settings(theme: "dark"))
    try await bytes.close()
    try location.remove()
  }
}

extension CodingUserInfoKey {
  // Any text is a valid key.
  fileprivate static var author: CodingUserInfoKey {
    CodingUserInfoKey(rawValue: "author") ?? { preconditionFailure() }()
  }
}
#endif
