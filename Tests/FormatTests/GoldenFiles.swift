import Foundation
import Larder
import LarderCBOR
import LarderJSON
import LarderQueue
import TestSupport

#if Compression
import LarderCompressedFile
#endif
#if Crypto
import LarderCrypto
#endif
#if GRDB
import GRDB
import LarderGRDB
#endif
#if LMDB
import LarderLMDB
#endif
#if SQLite
import LarderSQLite
#endif

extension Golden {
  /// The stores with files of their own, and the formats of single files and texts.
  static var files: [Golden] {
    var goldens = [json, jsonWithJournal, queue, cbor, cursors, keys]
    #if Compression
    goldens += [compressed, openCompressed]
    #endif
    #if Crypto
    goldens += [keyRing, passwordFile]
    #endif
    #if LMDB
    goldens.append(lmdb)
    #endif
    #if SQLite
    goldens += [sqlite, sqliteText]
    #endif
    #if GRDB
    goldens.append(grdb)
    #endif
    return goldens
  }

  /// Copies the files of an open store, without its locks.
  private static func copy(_ folder: TemporaryFolder, to path: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for name in try folder.names where !name.contains("lock") {
      try FileManager.default.copyItem(atPath: folder.path(name), toPath: "\(path)/\(name)")
    }
  }

  private static var json: Golden {
    Golden(name: "users.json", content: User.content) { path in
      let store = try await JSONFileStore<User>(path: path)
      try await store.writeUsers()
      try await store.compact()
      try await store.close()
    } read: {
      try await JSONFileStore<User>(path: $0, createsIfMissing: false).readUsersAndClose()
    }
  }

  private static var jsonWithJournal: Golden {
    Golden(name: "json-with-journal", content: ["user:1": User.bob.text, "user:4": User.ada.text]) { path in
      let folder = try TemporaryFolder()
      let store = try await JSONFileStore<User>(path: folder.path("users.json"))
      try await store.writeUsers()
      try await store.compact()
      try await store.setValue(.bob, forKey: "user:1")
      try await store.removeValue(forKey: "user:2")
      try await store.setValue(.ada, forKey: "user:3")
      var batch = ChangeBatch<User>()
      batch.removeAll(in: "user:3"..<"user:4")
      batch.setValue(.ada, forKey: "user:4")
      try await store.apply(batch)
      try copy(folder, to: path)
      try await store.close()
    } read: {
      try await JSONFileStore<User>(path: $0 + "/users.json", createsIfMissing: false).readUsersAndClose()
    }
  }

  /// A waiting, a delayed, a leased and a dead item, without the one that was acknowledged.
  private static var queue: Golden {
    let environment = QueueEnvironment(now: { date })
    let content = [
      "waiting": "Ada 1", "delayed": "Ada 1, delayed", "leased": "Bob ☃ -2, leased", "dead": "Bob ☃ -2, dead",
    ]
    return Golden(name: "queue", content: content) { path in
      let queue = try await QueueStore<User>(
        path: path, codec: .cbor(), configuration: QueueConfiguration(maximumDeliveries: 1), environment: environment)
      try await queue.enqueue([
        QueueInput(.ada, id: "acknowledged"), QueueInput(.bob, id: "dead"), QueueInput(.bob, id: "leased"),
        QueueInput(.ada, id: "waiting"), QueueInput(.ada, id: "delayed", after: .seconds(60)),
      ])
      let deliveries = try await queue.receive(max: 3, lease: .seconds(60))
      try await queue.acknowledge(deliveries[0].receipt)
      try await queue.release(deliveries[1].receipt)
      try await queue.close()
    } read: { path in
      let queue = try await QueueStore<User>(
        path: path, codec: .cbor(), configuration: QueueConfiguration(maximumDeliveries: 1), createsIfMissing: false,
        environment: environment)
      var texts = Dictionary(
        uniqueKeysWithValues: try await queue.peek(max: 9).map { ($0.key.string ?? "", $0.value.text) })
      for letter in try await queue.deadLetters() {
        texts[letter.key.string ?? ""] = "\(try letter.value.get().text), dead"
      }
      let counts = try await queue.counts()
      try await queue.close()
      // The queue lists neither delayed nor leased items, so the numbers of both stand for them.
      if counts.delayed == 1 { texts["delayed"] = "Ada 1, delayed" }
      if counts.leased == 1 { texts["leased"] = "Bob ☃ -2, leased" }
      return texts
    }
  }

  /// One value with every type that the article "The encoding of values as CBOR" names.
  private struct Everything: Codable, Sendable, Equatable {
    enum Shape: Codable, Equatable { case circle(radius: Double) }
    var small = -1
    var large = UInt128.max
    var double = 1.5
    var flag = true
    var missing: Int??
    var data = Data([1, 2])
    var bytes: [UInt8] = [3, 4]
    var array = ["a", "ü"]
    var map = ["b": 2, "a": 1]
    var byUUID = [UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)): 1]
    var date = Golden.date
    var fraction = Golden.date.addingTimeInterval(0.25)
    var decimal = Decimal(sign: .minus, exponent: -2, significand: 1234)
    var url = URL(string: "https://larder.example/")
    var shape = Shape.circle(radius: 2)
  }

  private static var cbor: Golden {
    // In the forms in which `read-formats.py` prints them.
    let content = [
      "small": "-1", "large": "340282366920938463463374607431768211455", "double": "1.5", "flag": "true",
      "data": "0102", "bytes": "0304", "array": "[a, ü]", "map": "{a: 1, b: 2}",
      "byUUID": "{00010203-0405-0607-0809-0a0b0c0d0e0f: 1}", "date": "1800000000", "fraction": "1800000000.25",
      "decimal": "-12.34", "url": "https://larder.example/", "shape": "{circle: {radius: 2.0}}",
    ]
    return Golden(name: "value.cbor", content: content) { path in
      var bytes: [UInt8] = []
      try CBORCodec<Everything>().encode(Everything(), into: &bytes)
      try Data(bytes).write(to: URL(filePath: path))
    } read: { path in
      let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
      let value = try CBORCodec<Everything>().decode(bytes.span.bytes)
      return value == Everything() ? content : ["value": "\(value)"]
    }
  }

  private static var cursors: Golden {
    let cursors = [
      PageCursor(after: "user:1", order: .ascending),
      PageCursor(after: StoreKey(bytes: [0xFF, 0, 0xFB]), order: .descending),
      PageCursor(after: "a", order: .descending, index: "näme"),
    ]
    let content = ["0": "ascending  757365723a31", "1": "descending  ff00fb", "2": "descending näme 61"]
    return Golden(name: "cursors.txt", content: content) { path in
      try cursors.map { "\($0.text)\n" }.joined().write(toFile: path, atomically: true, encoding: .utf8)
    } read: { path in
      var texts: [String: String] = [:]
      for (number, line) in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").enumerated() {
        let cursor = try PageCursor(String(line))
        texts["\(number)"] = "\(cursor.order) \(cursor.index ?? "") \(Hexadecimal.text(of: cursor.key.bytes))"
      }
      return texts
    }
  }

  private static var keys: Golden {
    let content = ["0": "txn, -300, 0, 17, 1.5, true, 00ff, nil"]
    return Golden(name: "key.components", content: content) { path in
      let missing: String? = nil
      let bytes: [UInt8] = [0, 0xFF]
      let key = StoreKey(components: "txn", -300, 0, 17, 1.5, true, bytes, missing)
      try Data(key.bytes).write(to: URL(filePath: path))
    } read: { path in
      let parts = try StoreKey(bytes: Data(contentsOf: URL(filePath: path))).components()
      let texts = parts.map { part in
        switch part {
        case .null: "nil"
        case .bytes(let bytes): Hexadecimal.text(of: bytes)
        case .string(let text): text
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .boolean(let flag): "\(flag)"
        default: "\(part)"
        }
      }
      return ["0": texts.joined(separator: ", ")]
    }
  }

  #if Compression
  /// A file that was closed after compaction and a further batch.
  private static var compressed: Golden {
    Golden(name: "users.gz", content: User.content) { path in
      let store = try await CompressedFileStore<User>(path: path)
      try await store.setValue(.bob, forKey: "user:1")
      try await store.setValue(.bob, forKey: "user:2")
      try await store.compact()
      try await store.setValue(.ada, forKey: "user:1")
      try await store.close()
    } read: {
      try await CompressedFileStore<User>(path: $0, createsIfMissing: false).readUsersAndClose()
    }
  }

  /// The file of a store that was not closed.
  private static var openCompressed: Golden {
    Golden(name: "compressed-open", content: ["user:2": User.bob.text]) { path in
      let folder = try TemporaryFolder()
      let store = try await CompressedFileStore<User>(path: folder.path("users.gz"))
      try await store.writeUsers()
      try await store.removeAll(in: .prefix("user:1"))
      try copy(folder, to: path)
      try await store.close()
    } read: {
      try await CompressedFileStore<User>(path: $0 + "/users.gz", createsIfMissing: false).readUsersAndClose()
    }
  }
  #endif

  #if LMDB
  private static var lmdb: Golden {
    Golden(name: "lmdb", content: User.content, isReadByPython: false) { path in
      let folder = try TemporaryFolder()
      let store = try await LMDBStore<User>(path: folder.path("users"), codec: .cbor())
      try await store.writeUsers()
      try await store.close()
      try copy(folder, to: path)
    } read: {
      try await LMDBStore<User>(path: $0 + "/users", codec: .cbor(), createsIfMissing: false).readUsersAndClose()
    }
  }
  #endif

  #if SQLite
  private static var sqlite: Golden {
    Golden(name: "users.sqlite", content: User.content) { path in
      let store = try await SQLiteStore<User>(path: path, codec: .cbor())
      try await store.writeUsers()
      try await store.close()
    } read: {
      try await SQLiteStore<User>(path: $0, codec: .cbor(), createsIfMissing: false).readUsersAndClose()
    }
  }

  private static var sqliteText: Golden {
    Golden(name: "users-text.sqlite", content: User.content) { path in
      let store = try await SQLiteStore<User>(path: path, codec: .json(), layout: .clustered)
      try await store.writeUsers()
      try await store.close()
    } read: {
      try await SQLiteStore<User>(path: $0, codec: .json(), createsIfMissing: false).readUsersAndClose()
    }
  }
  #endif

  #if GRDB
  private static var grdb: Golden {
    Golden(name: "users-grdb.sqlite", content: User.content) { path in
      let database = try DatabaseQueue(path: path)
      let store = try await GRDBStore<User>(in: database, codec: .json())
      try await store.writeUsers()
      try await store.close()
      try database.close()
    } read: { path in
      let database = try DatabaseQueue(path: path)
      let store = try await GRDBStore<User>(in: database, codec: .json(), createsIfMissing: false)
      let texts = try await store.readUsersAndClose()
      try database.close()
      return texts
    }
  }
  #endif

  #if Crypto
  /// The ring of the values in ``encrypted``, which is the one of the article.
  static let ring = """
    {"keys":[{"kty":"oct","kid":"5aa8cf3d1bc03fca","alg":"A256GCM","iat":1767225600,\
    "k":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}],"primary":"5aa8cf3d1bc03fca"}
    """

  private static let ringContent = ["5aa8cf3d1bc03fca": "primary"]

  private static func texts(of ring: KeyRing) -> [String: String] {
    Dictionary(
      uniqueKeysWithValues: ring.keys.map { (Hexadecimal.text(of: $0.id.bytes), $0.isPrimary ? "primary" : "") })
  }

  private static var keyRing: Golden {
    Golden(name: "ring.jwks", content: ringContent) { path in
      try await FileKeySource(path: path).save(Array(ring.utf8), replacing: nil)
    } read: { path in
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return texts(of: try await KeyRing.open(in: FileKeySource(path: path)))
    }
  }

  private static var passwordFile: Golden {
    Golden(name: "ring.jwe", content: ringContent, isReadByPython: false) { path in
      try await PasswordFileKeySource.passwordFile(path, password: KeyFilePassword("correct horse")).save(
        Array(ring.utf8), replacing: nil)
    } read: { path in
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return texts(
        of: try await KeyRing.open(
          in: PasswordFileKeySource.passwordFile(path, password: KeyFilePassword("correct horse"))))
    }
  }
  #endif
}
