public import ArgumentParser
import Larder
public import LarderHTTPCache
import StoreAccess

/// `larder http`.
struct HTTPCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "http",
    abstract: "Inspect an HTTP cache, check it, and remove responses from it.",
    discussion: """
      An HTTP cache is a part of a store of bytes. The keys of its entries begin with http/, or with the prefix that \
      --key-prefix names. The verbs also work while a program uses the cache, if the store can be shared, as lmdb: can.

        larder http list lmdb:proxy --prefix https://api.example/
        larder http show lmdb:proxy https://api.example/users/7
        larder http explain lmdb:proxy https://api.example/users/7
        larder http purge lmdb:proxy --prefix https://api.example/users/
        larder http verify lmdb:proxy
      """,
    subcommands: [
      HTTPListCommand.self, HTTPShowCommand.self, HTTPExplainCommand.self, HTTPPurgeCommand.self, HTTPStatCommand.self,
      HTTPVerifyCommand.self,
    ])
}

/// The HTTP cache that a verb works on.
struct HTTPCacheArgument: ParsableArguments {
  @Argument(help: "The store that the cache is in, such as lmdb:proxy.") var url: String
  @Option(help: ArgumentHelp("The prefix of the cache's keys in the store.", valueName: "prefix"))
  var keyPrefix = "http/"
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    url = try ConfiguredStacks.url(url)
    guard !keyPrefix.isEmpty else {
      throw ValidationError("--key-prefix is empty; give the prefix of the cache's keys")
    }
  }

  /// Opens the store, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - access: The access of the store to its files.
  ///   - mode: The kind of the cache, which decides on freshness. Defaults to `shared`.
  ///   - body: Receives the store of bytes, the settings of the cache, and the output, which is flushed afterward.
  /// - Throws: ``CommandFailure`` if the store does not hold bytes, or there is no cache with the prefix; the errors of
  ///   ``StoreSession/run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  func run(
    access: StoreAccess, mode: HTTPCacheMode = .shared,
    _ body: (AnyDataStore<[UInt8]>, HTTPCacheConfiguration, ByteOutput) async throws -> Void
  ) async throws {
    var configuration = HTTPCacheConfiguration(mode: mode)
    configuration.prefix = StoreKey(keyPrefix)
    let target = opening.target(url)
    do {
      try await StoreSession.runBytes(target, for: "an HTTP cache", access: access) { store, output in
        guard try await HTTPCacheInspector(store, configuration: configuration).isPresent() else {
          throw CommandFailure(
            .noInput, "\(url) has no HTTP cache with the prefix \(keyPrefix)",
            advice: "Check --key-prefix; a program that uses the cache creates it.")
        }
        try await body(store, configuration, output)
      }
    } catch let error as HTTPCacheError {
      throw CommandFailure(.usage, error.message)
    }
  }
}

/// The option of the verbs that print the freshness of responses.
struct HTTPModeOption: ParsableArguments {
  @Option(help: "The kind of the cache: shared, or private, which ignores s-maxage.") var mode = HTTPCacheMode.shared
}

extension HTTPCacheMode: @retroactive ExpressibleByArgument {}

/// `larder http stat`.
struct HTTPStatCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Print the sizes of an HTTP cache.",
    discussion: """
      Prints a table, or with --json one object. bytes is what the capacity of the cache limits. Bodies without a \
      response are counted as marked while they are being stored, and as retired before they are removed. The marked \
      ones have reserved reservedBytes of their share of the capacity, and the programs of the abandoned ones have ended.

        larder http stat lmdb:proxy
        larder http stat lmdb:proxy --json
      """)

  @OptionGroup var cache: HTTPCacheArgument
  @OptionGroup var access: AccessOption
  @Flag(name: .customLong("json"), help: "Print one JSON object instead of the table.") var printsJSON = false

  func run() async throws {
    try await cache.run(access: access.storeAccess) { store, configuration, output in
      let usage = try await HTTPCacheInspector(store, configuration: configuration).usage()
      let figures = [
        ("bytes", "\(usage.bytes)"), ("responses", "\(usage.responseCount)"), ("bodies", "\(usage.bodyCount)"),
        ("bodyBytes", "\(usage.bodyBytes)"), ("marks", "\(usage.markCount)"), ("markedBytes", "\(usage.markedBytes)"),
        ("reservedBytes", "\(usage.reservedBytes)"), ("abandoned", "\(usage.abandonedCount)"),
        ("retired", "\(usage.retiredCount)"), ("retiredBytes", "\(usage.retiredBytes)"),
        ("invalidations", "\(usage.invalidationCount)"),
      ]
      if printsJSON {
        try output.writeLine("{\(figures.map { "\"\($0)\":\($1)" }.joined(separator: ","))}")
      } else {
        for (name, value) in figures {
          try output.writeLine(name.padding(to: 14) + value)
        }
      }
    }
  }
}

/// `larder http verify`.
struct HTTPVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read and check a whole HTTP cache, and list the damage.",
    discussion: """
      Checks that every record can be read, that every body is complete and belongs to one response, and that the \
      totals of the cache are right. Prints a line {"key":...,"place":...,"message":...} for each finding, and exits \
      with 2 if there is any. Bytes that were changed within a body or a field are found only if the codec of the \
      store checks its values, as raw+checksum does.

        larder http verify lmdb:proxy
      """)

  @OptionGroup var cache: HTTPCacheArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    var verification: HTTPCacheInspector.Verification?
    try await cache.run(access: access.storeAccess) { store, configuration, output in
      let result = try await HTTPCacheInspector(store, configuration: configuration).verify()
      for finding in result.report.findings {
        try output.writeLine { EntryLine.append(finding, to: &$0) }
      }
      verification = result
    }
    guard let verification else { throw ExitStatus.internalFailure }
    let summary = VerifyCommand.summary(of: verification.report)
    let limit = verification.isComplete ? "" : "; a program kept changing the cache, so the totals were not checked"
    Diagnostics.writeLine(summary + limit)
    if !verification.report.findings.isEmpty { throw ExitStatus.damaged }
  }
}
