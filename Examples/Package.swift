// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "LarderExamples",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(
      name: "Larder", path: "..",
      traits: [
        "LMDB", "SQLite", "GRDB", "Postgres", "Metrics", "Compression", "Crypto", "HTTPClient", "ConfigurationYAML",
        "Hummingbird", "ServiceLifecycle", "Inspector",
      ]),
    .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.6.0"),
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    // For CachingProxy.
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.0.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // Code that several examples share.
    .target(name: "ExampleSupport", path: "ExampleSupport"),
    .executableTarget(
      name: "FileCatalog",
      dependencies: [
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderBatching", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "FileCatalog"),
    .executableTarget(
      name: "TransactionFeed",
      dependencies: [
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderBatching", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "TransactionFeed"),
    .executableTarget(
      name: "ImageCache",
      dependencies: [
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderBounded", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "ImageCache"),
    .executableTarget(
      name: "ImageCacheTest",
      dependencies: [
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderCompression", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "ImageCacheTest"),
    .executableTarget(
      name: "EventUploader",
      dependencies: [
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderWorker", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "FlyingFox", package: "FlyingFox"),
        .product(name: "FlyingSocks", package: "FlyingFox"),
      ],
      path: "EventUploader"),
    .executableTarget(
      name: "Notes",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCrypto", package: "Larder"),
        .product(name: "LarderIndexes", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Notes"),
    .executableTarget(
      name: "Orders",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderGRDB", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      path: "Orders"),
    .executableTarget(
      name: "Payments",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Payments"),
    .executableTarget(
      name: "Scheduler",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderCoordination", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
      ],
      path: "Scheduler"),
    .executableTarget(
      name: "Shop",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderConfiguration", package: "Larder"),
        .product(name: "LarderCoordination", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderHTTPClient", package: "Larder"),
        .product(name: "LarderHummingbird", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderService", package: "Larder"),
        .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "LarderWorker", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "Shop"),
    .testTarget(
      name: "ShopTests",
      dependencies: [
        "ExampleSupport",
        "PostgresServers",
        "Shop",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderConfiguration", package: "Larder"),
        .product(name: "LarderHTTPClient", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ]),
    .executableTarget(
      name: "CachingProxy",
      dependencies: [
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderHTTPClient", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
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
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "CachingProxy"),
    // It starts CachingProxy as a process.
    .executableTarget(
      name: "HTTPCacheDemo",
      dependencies: [
        "ExampleSupport",
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "FlyingFox", package: "FlyingFox"),
        .product(name: "FlyingSocks", package: "FlyingFox"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      path: "HTTPCacheDemo"),
    .testTarget(
      name: "HTTPCacheDemoTests",
      dependencies: [
        "CachingProxy", "HTTPCacheDemo",
        .product(name: "NIOCore", package: "swift-nio"),
      ]),
    .testTarget(
      name: "CachingProxyTests",
      dependencies: [
        "CachingProxy",
        "HTTPTestSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
    // The server, the messages and the cache that the tests of HTTP share.
    .target(
      name: "HTTPTestSupport",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      path: "Tests/HTTPTestSupport"),
    // Here and not in the package itself, because AsyncHTTPClient takes long to build.
    .testTarget(
      name: "LarderHTTPClientTests",
      dependencies: [
        "HTTPTestSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderHTTPClient", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ]),
    .testTarget(
      name: "LarderURLSessionTests",
      dependencies: [
        "HTTPTestSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "LarderURLSession", package: "Larder"),
      ]),
    .testTarget(
      name: "OrdersTests",
      dependencies: [
        "ExampleSupport",
        "Orders",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderGRDB", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    // The files are links to those of the root's tests, whose server belongs to no product.
    .target(
      name: "PostgresServers",
      dependencies: [
        .product(name: "Larder", package: "Larder"), .product(name: "LarderFiles", package: "Larder"),
      ],
      path: "Tests/PostgresServers"),
    .testTarget(
      name: "PaymentsTests",
      dependencies: [
        "ExampleSupport",
        "Payments",
        "PostgresServers",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
      ]),
    .testTarget(
      name: "SchedulerTests",
      dependencies: [
        "ExampleSupport",
        "Scheduler",
        .product(name: "Larder", package: "Larder"),
      ]),
    .testTarget(
      name: "NotesTests",
      dependencies: [
        "Notes",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCrypto", package: "Larder"),
        .product(name: "LarderIndexes", package: "Larder"),
        .product(name: "LarderObservation", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
      ]),
    .testTarget(
      name: "FileCatalogTests",
      dependencies: [
        "FileCatalog",
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
      ]),
    .testTarget(
      name: "TransactionFeedTests",
      dependencies: [
        "TransactionFeed",
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    .testTarget(name: "ImageCacheTests", dependencies: ["ImageCache"]),
    .testTarget(
      name: "ImageCacheTestTests",
      dependencies: [
        "ImageCacheTest",
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
      ]),
    // Here and not in the package itself, because its tests are the only ones that need GRDB.
    .testTarget(
      name: "LarderGRDBTests",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderBatching", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderGRDB", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    // The tests of LarderHummingbird are here and not in the package itself, because this package builds Hummingbird anyway.
    .testTarget(
      name: "LarderHummingbirdTests",
      dependencies: [
        "PostgresServers",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCoordination", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderHummingbird", package: "Larder"),
        .product(name: "LarderHummingbirdTesting", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderService", package: "Larder"),
        .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ]),
    // The tests of LarderInspector are here for the same reason.
    .testTarget(
      name: "LarderInspectorTests",
      dependencies: [
        "PostgresServers",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderInspector", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderObservation", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "NIOCore", package: "swift-nio"),
      ]),
    .testTarget(
      name: "EventUploaderTests",
      dependencies: [
        "EventUploader",
        "ExampleSupport",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

// CI sets LARDER_WARNINGS_AS_ERRORS.
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
