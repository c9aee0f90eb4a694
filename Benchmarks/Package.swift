// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that packages that depend on Larder don't resolve the dependencies of the benchmarks.

let package = Package(
  name: "LarderBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    // By name, so that the folder of the repository can have any name.
    .package(
      name: "Larder", path: "..",
      traits: ["LMDB", "SQLite", "GRDB", "Postgres", "Metrics", "Compression", "Crypto", "HTTPClient"]),
    // No traits: they add a layer between the program and the memory allocator, which would be measured too.
    .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-protobuf", exact: "1.39.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.5.0"),
    // For the servers and the clients on loopback.
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.0.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .executableTarget(
      name: "LarderBenchmarks",
      dependencies: ["Workloads", .product(name: "Benchmark", package: "benchmark")],
      // The plugin only looks for benchmarks in this folder.
      path: "Benchmarks/LarderBenchmarks",
      plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
    ),
    .executableTarget(
      name: "Ratios",
      dependencies: ["Workloads", .product(name: "ArgumentParser", package: "swift-argument-parser")]),
    .executableTarget(
      name: "hit-ratio",
      dependencies: [
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Sources/HitRatio"
    ),
    .executableTarget(
      name: "OpenDocument",
      dependencies: [
        "PeakMemory", .product(name: "Larder", package: "Larder"), .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderCompression", package: "Larder"),
      ]
    ),
    .executableTarget(
      name: "CoordinationCosts",
      dependencies: [
        "PostgresServers",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCoordination", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
      ]),
    .executableTarget(
      name: "FeedCosts",
      dependencies: [
        "PostgresServers",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
      ]),
    .executableTarget(
      name: "FillCache", dependencies: ["PeakMemory", .product(name: "LarderCache", package: "Larder")]),
    .executableTarget(
      name: "FillQueue",
      dependencies: [
        "PeakMemory", .product(name: "Larder", package: "Larder"), .product(name: "LarderQueue", package: "Larder"),
      ]),
    .executableTarget(
      name: "Growth",
      dependencies: [
        "PeakMemory", "PostgresServers", "RawLMDB", "RawSQLite",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
      ]),
    .executableTarget(
      name: "InstructionCounts",
      dependencies: [
        "CallgrindRequests",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
      ]),
    .target(name: "CallgrindRequests"),
    .target(name: "PeakMemory"),
    .target(
      name: "Workloads",
      dependencies: [
        "ForwardingStore",
        "LoopbackHTTP",
        "PostgresServers",
        "RawLMDB",
        "RawSQLite",
        "RawZlib",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderGRDB", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderCompression", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderBatching", package: "Larder"),
        .product(name: "LarderBounded", package: "Larder"),
        .product(name: "LarderCrypto", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "HTTPCachingRules", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderHTTPClient", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderObservation", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"), .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      exclude: ["Codecs/UserMessage.proto"]
    ),
    // The folder CachingProxy is a link to that of the example, whose server is internal.
    .target(
      name: "LoopbackHTTP",
      dependencies: [
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderHTTPClient", package: "Larder"),
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      // The command starts the program, and the status line writes to its terminal.
      exclude: ["CachingProxy/CachingProxyCommand.swift", "CachingProxy/StatusLine.swift"]),
    // The files are links to those of the tests, whose servers and proxy belong to no product.
    .target(
      name: "PostgresServers",
      dependencies: [
        .product(name: "Larder", package: "Larder"), .product(name: "LarderFiles", package: "Larder"),
      ]),
    // Written in C, because Swift is part of the measured cost. LarderLMDB knows how to find LMDB.
    .target(
      name: "RawLMDB", dependencies: [.product(name: "LarderLMDB", package: "Larder")],
      linkerSettings: [.linkedLibrary("lmdb")]),
    // As above, with LarderSQLite.
    .target(
      name: "RawSQLite", dependencies: [.product(name: "LarderSQLite", package: "Larder")],
      linkerSettings: [.linkedLibrary("sqlite3")]),
    // As above, with LarderCompression.
    .target(
      name: "RawZlib", dependencies: [.product(name: "LarderCompression", package: "Larder")],
      linkerSettings: [.linkedLibrary("z")]),
    // A separate module, like the decorators of Larder, because optimization across modules is part of the cost.
    .target(name: "ForwardingStore", dependencies: [.product(name: "Larder", package: "Larder")]),
  ],
  swiftLanguageModes: [.v6]
)

// CI sets LARDER_WARNINGS_AS_ERRORS. New warnings of a newer compiler never break other builds.
let warningsAreErrors = Context.environment["LARDER_WARNINGS_AS_ERRORS"] != nil

for target in package.targets {
  target.swiftSettings =
    (target.swiftSettings ?? []) + [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (warningsAreErrors ? [.treatAllWarnings(as: .error)] : [])
}
