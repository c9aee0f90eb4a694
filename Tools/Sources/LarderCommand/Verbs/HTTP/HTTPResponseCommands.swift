import ArgumentParser
import Foundation
import HTTPTypes
import Larder
import LarderHTTPCache
import StoreAccess

/// `larder http list`.
struct HTTPListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the stored responses in the order of their URLs.",
    discussion: """
      Prints a table, or with --json a line for each response with url, method, status, vary, freshness (fresh, stale \
      or validated, for one with no-cache), freshUntil, age in seconds, bytes in the store, length of the body (null \
      if it is not known), isComplete, and stored, the time at which it was received or last confirmed.

        larder http list lmdb:proxy
        larder http list lmdb:proxy --prefix https://api.example/ --limit 20
        larder http list lmdb:proxy --json | jq 'select(.freshness == "stale") | .url'
      """)

  @OptionGroup var cache: HTTPCacheArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var kind: HTTPModeOption
  @Option(help: ArgumentHelp("The beginning of the URLs. Defaults to all.", valueName: "url")) var prefix = ""
  @Option(help: ArgumentHelp("The maximum number of responses to print.", valueName: "n")) var limit: Int?
  @Flag(name: .customLong("json"), help: "Print lines of JSON instead of the table.") var printsJSON = false

  func validate() throws {
    guard limit.map({ $0 >= 1 }) ?? true else { throw ValidationError("--limit must be at least 1") }
  }

  func run() async throws {
    try await cache.run(access: access.storeAccess, mode: kind.mode) { store, configuration, output in
      let inspector = try HTTPCacheInspector(store, configuration: configuration)
      if !printsJSON { try output.writeLine(HTTPResponseLine.heading) }
      var (remaining, damaged, next): (Int, Int, StoreKey?) = (limit ?? .max, 0, nil)
      repeat {
        let page = try await inspector.responses(prefix: prefix, after: next)
        for response in page.responses.prefix(remaining) {
          try output.writeLine(
            printsJSON ? HTTPResponseLine.json(response) : HTTPResponseLine.text(response))
        }
        remaining -= min(remaining, page.responses.count)
        (damaged, next) = (damaged + page.damagedKeys.count, page.next)
      } while next != nil && remaining > 0
      if damaged > 0 {
        Diagnostics.writeLine("larder: \(damaged) records cannot be read; `larder http verify` lists them")
      }
    }
  }
}

/// `larder http show`.
struct HTTPShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Print the stored responses for a URL with their fields, or a body.",
    discussion: """
      Prints each response for the URL, the newest first, or with --json a line for each that has the members of `http \
      list --json`, and fields and selecting, the request fields of which one set must match. With --body it prints \
      the body of the newest complete response instead. Exits with 1 if there is none.

        larder http show lmdb:proxy https://api.example/users/7
        larder http show lmdb:proxy https://api.example/users/7 --json | jq .fields
        larder http show lmdb:proxy https://api.example/logo.png --body > logo.png
      """)

  @OptionGroup var cache: HTTPCacheArgument
  @Argument(help: "The URL of the responses.") var responseURL: String
  @OptionGroup var access: AccessOption
  @OptionGroup var kind: HTTPModeOption
  @Flag(name: .customLong("json"), help: "Print lines of JSON instead of text.") var printsJSON = false
  @Flag(name: .customLong("body"), help: "Print the body of the newest complete response.") var printsBody = false

  func validate() throws {
    guard !printsJSON || !printsBody else { throw ValidationError("give either --json or --body") }
  }

  func run() async throws {
    try await cache.run(access: access.storeAccess, mode: kind.mode) { store, configuration, output in
      let inspector = try HTTPCacheInspector(store, configuration: configuration)
      let responses = try await inspector.responses(to: responseURL)
      if printsBody {
        guard let response = responses.first(where: \.isComplete) else { throw ExitStatus.missing }
        return try await inspector.readBody(of: response) { try output.write(Array($0)) }
      }
      guard !responses.isEmpty else { throw ExitStatus.missing }
      for (number, response) in responses.enumerated() {
        if printsJSON {
          try output.writeLine(HTTPResponseLine.json(response, isDetailed: true))
        } else {
          if number > 0 { try output.writeLine("") }
          for line in HTTPResponseLine.details(response) { try output.writeLine(line) }
        }
      }
    }
  }
}

/// `larder http explain`.
struct HTTPExplainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Say whether a request would be answered from the cache, and why not.",
    discussion: """
      Prints one JSON object. isHit says whether a stored response answers a GET for the URL with the given fields, and \
      isStale whether that response is stale. forward is the reason for asking the origin, as Cache-Status names it: \
      uri-miss (nothing is stored), vary-miss (only responses to requests with other fields), stale (also for no-cache), \
      request (the fields demand it) or partial; null if the request is not forwarded. validates says whether the origin \
      can confirm a stored response, and candidates is the number of responses to the URL. Nothing is sent or changed.

        larder http explain lmdb:proxy https://api.example/users/7
        larder http explain lmdb:proxy https://api.example/page --field 'Accept-Language: de'
      """)

  @OptionGroup var cache: HTTPCacheArgument
  @Argument(help: "The URL of the request.") var requestURL: String
  @Option(help: ArgumentHelp("A field of the request. It can be repeated.", valueName: "name: value"))
  var field: [String] = []
  @OptionGroup var access: AccessOption
  @OptionGroup var kind: HTTPModeOption

  func validate() throws { _ = try fields() }

  private func fields() throws -> HTTPFields {
    var fields = HTTPFields()
    for text in field {
      let parts = text.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else {
        throw ValidationError("--field needs a name, a colon and a value, as in 'Accept-Language: de', not \(text)")
      }
      fields.append(HTTPField(name: name, value: parts[1].trimmingCharacters(in: .whitespaces)))
    }
    return fields
  }

  func run() async throws {
    let fields = try fields()
    try await cache.run(access: access.storeAccess, mode: kind.mode) { store, configuration, output in
      let inspector = try HTTPCacheInspector(store, configuration: configuration)
      let decision = try await inspector.decision(onURL: requestURL, fields: fields)
      let forward = decision.status.forward.map { "\"\($0.rawValue)\"" } ?? "null"
      try output.writeLine(
        """
        {"isHit":\(decision.status.isHit),"isStale":\(decision.status.isStale),"forward":\(forward),\
        "validates":\(!decision.validated.isEmpty),"candidates":\(decision.candidateCount)}
        """)
    }
  }
}

/// `larder http purge`.
struct HTTPPurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove the stored responses for URLs, in all programs that use the cache.",
    discussion: """
      Removes the responses for the URLs, for all URLs that begin with --prefix, or all responses. A response whose \
      request was forwarded before is not stored afterward, in no program. Prints {"purged":...} with the number of \
      responses. Their bodies are retired: the program that uses the cache removes them a minute later, or when it \
      opens the cache.

        larder http purge lmdb:proxy https://api.example/users/7
        larder http purge lmdb:proxy --prefix https://api.example/users/
        larder http purge lmdb:proxy --all
      """)

  @OptionGroup var cache: HTTPCacheArgument
  @Argument(help: "The URLs of the responses.") var urls: [String] = []
  @Option(help: ArgumentHelp("Remove the responses for all URLs that begin with this.", valueName: "url"))
  var prefix: String?
  @Flag(help: "Remove all responses.") var all = false

  func validate() throws {
    guard [!urls.isEmpty, prefix != nil, all].count(where: { $0 }) == 1 else {
      throw ValidationError("give either URLs, --prefix or --all")
    }
    guard prefix != "" else { throw ValidationError("--prefix is empty; give --all to remove all responses") }
  }

  func run() async throws {
    try await cache.run(access: .readWrite) { store, configuration, output in
      var configuration = configuration
      // The tool does not know the settings of the program that uses the cache. It must neither evict responses nor
      // remove bodies that the program still keeps for its readers.
      configuration.capacity = .max
      configuration.retention = .seconds(100 * 365 * 86_400)
      configuration.storeTimeLimit = .seconds(86_400)
      let inspector = try HTTPCacheInspector(store, configuration: configuration)
      let cache = try await HTTPCache(store, configuration: configuration)
      var count = 0
      for url in urls {
        count += try await inspector.responses(to: url).count
        try await cache.invalidate(url)
      }
      if let prefix {
        count += try await HTTPPurgeCommand.count(prefix, inspector)
        try await cache.invalidate(prefix: prefix)
      }
      if all {
        count += try await inspector.usage().responseCount
        try await cache.removeAll()
      }
      try output.writeLine("{\"purged\":\(count)}")
    }
  }

  private static func count(_ prefix: String, _ inspector: HTTPCacheInspector) async throws -> Int {
    var (count, next): (Int, StoreKey?) = (0, nil)
    repeat {
      let page = try await inspector.responses(prefix: prefix, after: next)
      (count, next) = (count + page.responses.count, page.next)
    } while next != nil
    return count
  }
}

/// The lines that the tool prints for a stored response.
enum HTTPResponseLine {
  /// The heading of the table.
  static let heading = line("STATUS", "FRESHNESS", "AGE", "BYTES", "URL")

  private static func line(_ status: String, _ freshness: String, _ age: String, _ bytes: String, _ url: String)
    -> String
  {
    status.padding(to: 8) + freshness.padding(to: 16) + age.padding(to: 10) + bytes.padding(to: 12) + url
  }

  /// Returns the line of the table for a response.
  static func text(_ response: HTTPStoredResponse) -> String {
    var notes = response.isComplete ? [] : ["incomplete"]
    let names = vary(response)
    if !names.isEmpty { notes.append("vary: \(names.joined(separator: ", "))") }
    let end = notes.isEmpty ? "" : " (\(notes.joined(separator: "; ")))"
    return line(
      "\(response.status)", freshness(response), seconds(response.age), "\(response.footprint)", response.url + end)
  }

  /// Returns the lines with all facts and fields of a response.
  static func details(_ response: HTTPStoredResponse) -> [String] {
    let length = response.length.map { "\($0)" } ?? "unknown"
    var lines = [
      response.url,
      "  freshness: \(freshness(response)), until \(response.freshUntil.formatted(.iso8601))",
      "  age:       \(seconds(response.age))",
      "  stored:    \(response.received.formatted(.iso8601))",
      "  used:      \(response.used.formatted(.iso8601))",
      "  body:      \(response.storedLength) bytes of \(length)",
      "  bytes:     \(response.footprint) in the store",
    ]
    if !response.partition.isEmpty { lines.append("  partition: \(text(response.partition))") }
    for set in response.selectingFields where !set.isEmpty {
      let fields = set.map { "\($0.name): \($0.value.map(text) ?? "(none)")" }
      lines.append("  selected by: \(fields.joined(separator: "; "))")
    }
    lines.append("HTTP \(response.status)")
    return lines + response.fields.map { "\($0.name.rawName): \($0.value.inOneLine)" }
  }

  /// Returns the object for a response.
  ///
  /// - Parameters:
  ///   - response: The response.
  ///   - isDetailed: A Boolean value that indicates whether the object also has the fields. Defaults to `false`.
  static func json(_ response: HTTPStoredResponse, isDetailed: Bool = false) -> String {
    func quoted(_ text: String) -> String { "\(JSONText(string: text))" }
    var members = [
      "\"url\":\(quoted(response.url))",
      // A cache answers GET and HEAD by what it has stored, whatever the method that got it.
      "\"method\":\"GET\"",
      "\"status\":\(response.status)",
      "\"vary\":[\(vary(response).map(quoted).joined(separator: ","))]",
      "\"freshness\":\"\(response.freshness)\"",
      "\"freshUntil\":\"\(response.freshUntil.formatted(.iso8601))\"",
      "\"age\":\(Int(response.age))",
      "\"bytes\":\(response.footprint)",
      "\"length\":\(response.length.map { "\($0)" } ?? "null")",
      "\"isComplete\":\(response.isComplete)",
      "\"stored\":\"\(response.received.formatted(.iso8601))\"",
    ]
    if !response.partition.isEmpty { members.append("\"partition\":\(quoted(text(response.partition)))") }
    if isDetailed {
      let fields = response.fields.map { "[\(quoted($0.name.rawName)),\(quoted($0.value))]" }
      let sets = response.selectingFields.map { set in
        let values = set.map { "\(quoted($0.name)):\($0.value.map { quoted(text($0)) } ?? "null")" }
        return "{\(values.joined(separator: ","))}"
      }
      members.append("\"used\":\"\(response.used.formatted(.iso8601))\"")
      members.append("\"storedLength\":\(response.storedLength)")
      members.append("\"fields\":[\(fields.joined(separator: ","))]")
      members.append("\"selecting\":[\(sets.joined(separator: ","))]")
    }
    return "{\(members.joined(separator: ","))}"
  }

  private static func vary(_ response: HTTPStoredResponse) -> [String] {
    response.selectingFields.first?.map(\.name) ?? []
  }

  private static func freshness(_ response: HTTPStoredResponse) -> String {
    switch response.freshness {
    case .fresh: "fresh \(seconds(response.lifetime - response.age))"
    case .stale: "stale \(seconds(response.age - response.lifetime))"
    case .validated: "validated"
    }
  }

  private static func seconds(_ seconds: Double) -> String { "\(Int(seconds)) s" }

  /// Returns bytes as text if they are UTF-8 without control characters, and in hexadecimal if not.
  private static func text(_ bytes: [UInt8]) -> String {
    if let text = String(validating: bytes, as: UTF8.self), text == text.inOneLine { return text }
    return StoreKey(bytes: bytes).hexadecimal
  }
}
