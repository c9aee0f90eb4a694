#if Configuration && LMDB && SQLite && Metrics && Crypto && Compression
import Foundation
import Larder
import LarderConfiguration
import LarderCrypto
import LarderQueue
import TestSupport
import Testing

/// Wrong configurations are errors that name the key, and open nothing.
@Suite struct WrongConfigurationTests {
  /// A configuration of one stack, by keys below `stores.s`.
  ///
  /// Each form adds the stack `copies`, for layers that use another stack.
  typealias Settings = [String: String]

  /// The form in which a source has settings.
  enum Form: CaseIterable, Sendable {
    case json
    case environment
    case arguments

    /// Returns a source, and the name that it has for a key.
    func source(_ settings: Settings) throws -> ConfigurationSource {
      switch self {
      case .json:
        var object: [String: Any] = [:]
        for (key, value) in settings {
          Form.set(value, at: key.split(separator: ".").map(String.init)[...], in: &object)
        }
        let document = try JSONSerialization.data(
          withJSONObject: ["stores": ["s": object, "copies": ["url": "memory:"]]])
        return try .json(document, name: "app.json")
      case .environment:
        return .environment(
          Dictionary(uniqueKeysWithValues: settings.map { (name(of: $0.key), $0.value) })
            .merging(["STORES_COPIES_URL": "memory:"]) { $1 })
      case .arguments:
        return .arguments(
          ["program"] + settings.flatMap { [name(of: $0.key), $0.value] } + ["--stores-copies-url", "memory:"])
      }
    }

    func name(of key: String) -> String {
      let words = "stores.s.\(key)".replacing(/[A-Z]/) { "-\($0.output.lowercased())" }
      return switch self {
      case .json: "stores.s.\(key)"
      case .environment: words.replacing(/[.-]/, with: "_").uppercased()
      case .arguments: "--" + words.replacing(".", with: "-")
      }
    }

    private static func set(_ text: String, at path: ArraySlice<String>, in object: inout [String: Any]) {
      guard path.count > 1 else {
        object[path.first ?? ""] =
          ["true": true, "false": false][text] ?? Int(text).map { $0 as Any } ?? text
        return
      }
      var inner = object[path[path.startIndex]] as? [String: Any] ?? [:]
      set(text, at: path.dropFirst(), in: &inner)
      object[path[path.startIndex]] = inner
    }
  }

  private let folder: TemporaryFolder
  private let url: String

  init() throws {
    folder = try TemporaryFolder()
    url = "json:\(folder.path("s"))"
  }

  /// Expects that a configuration is refused with an error that has a text, and that no file is made.
  private func expectRefusal(
    _ settings: Settings, as form: Form, naming text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let keys = try TemporaryFolder()
    let ring = try await KeyRing.open(in: .file(keys.path("keys")), createsIfMissing: true)
    let stacks = Stacks.all(try form.source(settings), ring: ring)
    let comment: Comment = "\(form): \(settings)"
    do {
      _ = try await stacks.open("s", codec: .json(Int.self))
      Issue.record("it was opened. \(comment)", sourceLocation: sourceLocation)
    } catch let error as StoreError {
      #expect([.invalidArgument, .unsupported].contains(error.code), comment, sourceLocation: sourceLocation)
      #expect(
        error.message.contains(text), "\(error.message) does not name \(text). \(comment)",
        sourceLocation: sourceLocation)
    }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path("")) == [], comment,
      sourceLocation: sourceLocation)
  }

  /// A valid configuration with all settings that do not contradict each other.
  private var complete: Settings {
    [
      "url": url, "durability": "buffered", "access": "readWrite", "create": "true", "metered.slow": "1s",
      "expiring.sliding": "30m", "expiring.purges": "false", "cached.entries": "100", "cached.ttl": "1h",
      "cached.refresh": "30m", "cached.missing": "10s", "writeBehind.age": "10ms", "writeBehind.changes": "10",
      "compressed.level": "9", "encrypted.ring": "main", "encrypted.purpose": "p", "bounded.bytes": "1MB",
      "bounded.entries": "100", "observable": "true", "tiered.cache": "copies", "tiered.ttl": "1h",
      "tiered.refresh": "30m", "tiered.missing": "10s", "tiered.plain": "true",
    ]
  }

  @Test(arguments: Form.allCases) func `the complete configuration is opened`(_ form: Form) async throws {
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let store = try await Stacks.all(try form.source(complete), ring: ring).open("s", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    #expect(try await store.value(forKey: "a") == 1)
    try await store.close()
  }

  /// Each key with a letter that is missing, doubled or another one.
  @Test(arguments: Form.allCases) func `a misspelled key is named`(_ form: Form) async throws {
    for key in complete.keys.sorted() {
      let last = key.index(before: key.endIndex)
      for wrong in [String(key[..<last]), key + String(key[last]), key[..<last] + "q"] {
        var settings = complete
        settings[wrong] = settings.removeValue(forKey: key)
        try await expectRefusal(settings, as: form, naming: form.name(of: wrong))
      }
    }
  }

  /// A misspelled name of a layer.
  @Test(arguments: Form.allCases) func `a misspelled layer is named`(_ form: Form) async throws {
    for layer in [
      "metered", "expiring", "cached", "batched", "writeBehind", "compressed", "encrypted", "bounded", "observable",
      "tiered", "mirrored",
    ] {
      try await expectRefusal(["url": url, "\(layer)x": "true"], as: form, naming: form.name(of: "\(layer)x"))
      try await expectRefusal(
        ["url": url, "\(layer.dropLast()).slow": "1s"], as: form, naming: form.name(of: "\(layer.dropLast()).slow"))
    }
  }

  @Test func `two layers at one place are named`() async throws {
    for (first, second) in [
      ("batched", "writeBehind"), ("batched.changes", "writeBehind.age"), ("batched", "writeBehind.changes"),
    ] {
      let value = ["batched": "true", "writeBehind": "true", "writeBehind.age": "1s"]
      let settings = ["url": url, first: value[first] ?? "5", second: value[second] ?? "5"]
      for form in Form.allCases {
        try await expectRefusal(settings, as: form, naming: "stores.s.writeBehind contradicts stores.s.batched")
      }
    }
    for form in Form.allCases {
      try await expectRefusal(
        ["url": url, "observable": "true", "mirrored.secondary": "copies"], as: form,
        naming: "stores.s.observable contradicts stores.s.mirrored")
    }
  }

  /// Another stack that a layer cannot use.
  @Test(arguments: [
    ("tiered.cache", "s", "which uses this stack itself"), ("tiered.cache", "Copies", "the name of another stack"),
    ("tiered.cache", "", "the name of another stack"), ("mirrored.secondary", "s", "which uses this stack itself"),
    ("mirrored.secondary", "my-copies", "the name of another stack"),
    ("mirrored.plain", "true", "secondary is required"),
    ("mirrored", "true", "secondary is required"), ("tiered", "true", "cache is required"),
  ]) func `an unfit stack is named`(_ key: String, _ value: String, _ text: String) async throws {
    for form in Form.allCases {
      try await expectRefusal(["url": url, key: value], as: form, naming: text)
      try await expectRefusal(["url": url, key: value], as: form, naming: "stores.s.\(key.prefix { $0 != "." }).")
    }
  }

  /// A layer that is switched off and has a setting, in the forms that can say both.
  @Test(arguments: [Form.environment, .arguments]) func `a layer that is off and set is named`(_ form: Form)
    async throws
  {
    for key in complete.keys.sorted() where key.contains(".") {
      let layer = String(key.prefix { $0 != "." })
      try await expectRefusal(
        ["url": url, layer: "false", key: complete[key] ?? ""], as: form,
        naming: "stores.s.\(key) contradicts stores.s.\(layer)")
    }
  }

  static let values: [(key: String, value: String, text: String)] = [
    ("url", "", "must be a text that is not empty"), ("url", "shop.db", "has no scheme"),
    ("url", "sqlit:shop.db", "the scheme sqlit:"), ("url", "12", "stores.s.url"),
    ("durability", "maybe", "must be synced or buffered"),
    ("access", "read", "must be readWrite or readOnly or immutable"),
    ("create", "maybe", "must be true or false"), ("cached.entries", "0", "a whole number of at least 1"),
    ("cached.entries", "-5", "a whole number"), ("cached.entries", "many", "a whole number"),
    ("cached.entries", "1.5", "a whole number"), ("cached.ttl", "0s", "a duration"), ("cached.ttl", "30", "a duration"),
    ("cached.ttl", "30 minutes", "a duration"), ("cached.refresh", "2h", "must be less than stores.s.cached.ttl"),
    ("cached.missing", "99999999999999999999d", "a duration"), ("expiring.sliding", "40000d", "a duration"),
    ("expiring.after", "1h", "stores.s.expiring.sliding contradicts stores.s.expiring.after"),
    ("expiring.purges", "sometimes", "must be true or false"), ("bounded.bytes", "0", "a size"),
    ("bounded.bytes", "10XB", "a size"), ("bounded.bytes", "9999999999999999999TB", "a size"),
    ("bounded.entries", "0", "a whole number"), ("compressed.level", "10", "from 1 to 9"),
    ("compressed.level", "0", "from 1 to 9"), ("encrypted.ring", "other", "must be main"),
    ("encrypted.purpose", "", "a text"), ("metered.slow", "fast", "a duration"),
    ("writeBehind.age", "-1s", "a duration"), ("observable", "perhaps", "must be true or false"),
    ("tiered.cache", "s", "which uses this stack itself"), ("tiered.ttl", "0s", "a duration"),
    ("tiered.refresh", "2h", "must be less than stores.s.tiered.ttl"), ("tiered.missing", "soon", "a duration"),
    ("tiered.plain", "maybe", "must be true or false"),
    ("writeBehind.changes", "0", "a whole number"),
  ]

  @Test(arguments: values) func `a wrong value is named`(_ wrong: (key: String, value: String, text: String))
    async throws
  {
    for form in Form.allCases {
      var settings = complete
      settings[wrong.key] = wrong.value
      try await expectRefusal(settings, as: form, naming: wrong.text)
      try await expectRefusal(settings, as: form, naming: "stores.s.\(wrong.key)")
    }
  }

  @Test(arguments: ["url", "cached.entries", "encrypted.ring", "bounded.bytes", "tiered.cache"])
  func `a missing setting is named`(
    _ key: String
  ) async throws {
    for form in Form.allCases {
      var settings = complete
      settings[key] = nil
      try await expectRefusal(settings, as: form, naming: "stores.s.\(key) is")
    }
  }

  @Test func `an empty object is named`() async throws {
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let source = try ConfigurationSource.json(
      Data(#"{"stores": {"s": {"url": "memory:", "batched": {}}}}"#.utf8), name: "app.json")
    let error = await expectStoreError(.invalidArgument) {
      try await Stacks.all(source, ring: ring).open("s", codec: .json(Int.self))
    }
    #expect(
      error?.message == "stores.s.batched.{} in app.json is no setting; did you mean stores.s.batched?")
  }

  /// In JSON, `null` is a name without a value, and `true` is a number for some providers.
  @Test(arguments: [
    (#""encrypted": null"#, "stores.s.encrypted in app.json has no value"),
    (#""encrypted": {"ring": null}"#, "stores.s.encrypted.ring in app.json has no value"),
    (#""bounded": {"entries": 5, "bytes": null}"#, "stores.s.bounded.bytes in app.json has no value"),
    (#""access": null"#, "stores.s.access in app.json has no value"),
    (#""bounded": {"bytes": true}"#, "stores.s.bounded.bytes in app.json must be a size"),
    (#""cached": {"entries": true}"#, "stores.s.cached.entries in app.json must be a whole number"),
    (#""compressed": {"level": true}"#, "stores.s.compressed.level in app.json must be a whole number"),
    (#""tiered": {"cache": null}"#, "stores.s.tiered.cache in app.json has no value"),
    (#""tiered": {"cache": true}"#, "stores.s.tiered.cache in app.json must be the name of another stack"),
  ]) func `a value of another type is named`(_ setting: String, _ text: String) async throws {
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let source = try ConfigurationSource.json(
      Data(#"{"stores": {"s": {"url": "memory:", \#(setting)}}}"#.utf8), name: "app.json")
    let error = await expectStoreError(.invalidArgument) {
      try await Stacks.all(source, ring: ring).open("s", codec: .json(Int.self))
    }
    #expect(error?.message.hasPrefix(text) == true, "\(error?.message ?? "")")
  }

  #if ConfigurationYAML
  /// The provider of YAML does not merge mappings.
  @Test func `a merged mapping is named`() async throws {
    let path = folder.path("app.yaml")
    try "prod: &prod\n  encrypted: {ring: main}\nstores:\n  s:\n    <<: *prod\n    url: \"memory:\"\n"
      .write(toFile: path, atomically: true, encoding: .utf8)
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let error = await expectStoreError(.invalidArgument) {
      try await Stacks.all(.yaml(path: path), ring: ring).open("s", codec: .json(Int.self))
    }
    #expect(error?.message.contains("stores.s.encrypted") == true, "\(error?.message ?? "")")
  }
  #endif

  /// Purging would remove items, and a cache would hide those of others.
  @Test(arguments: [
    "cached.entries": "5", "cached.ttl": "1m", "batched": "true", "writeBehind": "true", "expiring.after": "1h",
    "bounded.entries": "5",
  ]) func `a layer over a queue is named`(_ key: String, _ value: String) async throws {
    let keys = try TemporaryFolder()
    let ring = try await KeyRing.open(in: .file(keys.path("keys")), createsIfMissing: true)
    let stacks = Stacks(
      sources: [try Form.json.source(["url": "queue:\(folder.path("q"))", key: value])],
      stores: [QueueStoreProvider()], layers: Stacks.layers(ring))
    let error = await expectStoreError(.invalidArgument) { try await stacks.openQueue("s", codec: .json(Int.self)) }
    #expect(error?.message.contains("does not fit stores.s.url") == true, "\(error?.message ?? "")")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("")) == [])
  }

  @Test func `nothing shows a password`() async throws {
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let stacks = Stacks.all(
      .environment(["STORES_S_URL": "user=ada password=secret host=db:5432"]), ring: ring)
    let error = await expectStoreError(.invalidArgument) { try await stacks.open("s", codec: .json(Int.self)) }
    #expect(error.map { "\($0) \(stacks)" }?.contains("secret") == false)
  }

  @Test(arguments: ["", "S", "s.t", "s-t", "s_t", "1s", "userSessions"])
  func `a name that a source cannot tell apart is refused`(
    _ name: String
  ) async throws {
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let stacks = Stacks.all(.environment(["STORES_S_URL": url]), ring: ring)
    await expectStoreError(.invalidArgument) { try await stacks.open(name, codec: .json(Int.self)) }
  }

  /// GRDB, PostgreSQL and other stores without reports would be cached without a limit.
  @Test func `a cache over a store that does not report needs a limit of time`() async throws {
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    for (settings, isOpened) in [
      (["url": "silent:", "cached.entries": "5"], false),
      (["url": "silent:", "cached.entries": "5", "cached.ttl": "1m"], true),
    ] {
      let stacks = Stacks(
        sources: [try Form.environment.source(settings)], stores: [SilentStoreProvider()], layers: Stacks.layers(ring))
      if isOpened {
        try await stacks.open("s", codec: .json(Int.self)).close()
      } else {
        let error = await expectStoreError(.unsupported) { try await stacks.open("s", codec: .json(Int.self)) }
        #expect(error?.message.contains("stores.s.cached would serve old values") == true)
      }
    }
  }
}

/// Stores that others can write, without reports.
private struct SilentStoreProvider: StoreProvider {
  fileprivate struct Untyped: UntypedStore {
    var codecName: String { "json" }

    func typed<Value: Sendable>(codec: some Codec<Value>) -> AnyDataStore<Value> {
      AnyDataStore(SilentStore(base: MemoryStore<Value>()))
    }
  }

  private struct SilentStore<Value: Sendable>: PassingStore {
    let base: MemoryStore<Value>

    var information: StoreInformation {
      var information = base.information
      information.sharing = .betweenHosts
      return information
    }
  }

  var scheme: String { "silent" }
  var summary: String { "stores without reports" }
  var codecName: String { "json" }

  func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) -> Untyped { Untyped() }
}
#endif
