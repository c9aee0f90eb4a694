// swift-tools-version: 6.2

import PackageDescription

// A dependant resolves and builds only the products that it uses:
//
// - A module that needs another package or a C library is behind a trait of this manifest, which is off by default.
//   Without its trait, the module contains only declarations that name the missing trait.
// - The command-line tool, the examples and the benchmarks are nested packages with their own manifests.
//
// `Scripts/prove-isolation` verifies this.

let package = Package(
  name: "Larder",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderKit", targets: ["LarderKit"]),
    .library(name: "LarderFiles", targets: ["LarderFiles"]),
    .library(name: "LarderJSON", targets: ["LarderJSON"]),
    .library(name: "LarderLMDB", targets: ["LarderLMDB"]),
    .library(name: "LarderSQLite", targets: ["LarderSQLite"]),
    .library(name: "LarderGRDB", targets: ["LarderGRDB"]),
    .library(name: "LarderPostgres", targets: ["LarderPostgres"]),
    .library(name: "LarderCompression", targets: ["LarderCompression"]),
    .library(name: "LarderCompressedFile", targets: ["LarderCompressedFile"]),
    .library(name: "LarderCBOR", targets: ["LarderCBOR"]),
    .library(name: "LarderCrypto", targets: ["LarderCrypto"]),
    .library(name: "LarderCache", targets: ["LarderCache"]),
    .library(name: "LarderExpiry", targets: ["LarderExpiry"]),
    .library(name: "LarderBatching", targets: ["LarderBatching"]),
    .library(name: "LarderBounded", targets: ["LarderBounded"]),
    .library(name: "LarderIndexes", targets: ["LarderIndexes"]),
    .library(name: "LarderMirror", targets: ["LarderMirror"]),
    .library(name: "LarderMetrics", targets: ["LarderMetrics"]),
    .library(name: "LarderObservation", targets: ["LarderObservation"]),
    .library(name: "LarderQueue", targets: ["LarderQueue"]),
    .library(name: "LarderStoreQueue", targets: ["LarderStoreQueue"]),
    .library(name: "LarderWorker", targets: ["LarderWorker"]),
    .library(name: "LarderCoordination", targets: ["LarderCoordination"]),
    .library(name: "LarderConfiguration", targets: ["LarderConfiguration"]),
    .library(name: "LarderService", targets: ["LarderService"]),
    .library(name: "LarderHummingbird", targets: ["LarderHummingbird"]),
    .library(name: "LarderInspector", targets: ["LarderInspector"]),
    .library(name: "HTTPCachingRules", targets: ["HTTPCachingRules"]),
    .library(name: "LarderHTTPCache", targets: ["LarderHTTPCache"]),
    .library(name: "LarderHTTPClient", targets: ["LarderHTTPClient"]),
    .library(name: "LarderURLSession", targets: ["LarderURLSession"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
    .library(name: "LarderHummingbirdTesting", targets: ["LarderHummingbirdTesting"]),
  ],
  traits: [
    .trait(name: "LMDB", description: "The module LarderLMDB, which needs the C library LMDB."),
    .trait(name: "SQLite", description: "The module LarderSQLite, which needs the C library SQLite."),
    .trait(name: "Postgres", description: "The module LarderPostgres, which needs PostgreSQL's C library libpq."),
    .trait(name: "GRDB", description: "The module LarderGRDB, which needs the package GRDB."),
    .trait(
      name: "Compression",
      description: "The modules LarderCompression and LarderCompressedFile, which need the C library zlib."),
    .trait(name: "Crypto", description: "The module LarderCrypto, which needs the package swift-crypto."),
    .trait(
      name: "ServiceLifecycle",
      description: """
        The module LarderService and the services of LarderWorker and LarderCoordination, which need the package \
        swift-service-lifecycle.
        """),
    .trait(
      name: "Configuration",
      description: "The module LarderConfiguration, which needs the package swift-configuration."),
    .trait(
      name: "ConfigurationYAML",
      description: "YAML files as configurations, which need the package Yams.", enabledTraits: ["Configuration"]),
    .trait(
      name: "Hummingbird",
      description: "The modules LarderHummingbird and LarderHummingbirdTesting, which need the package Hummingbird."),
    .trait(
      name: "Inspector",
      description:
        "The module LarderInspector, which needs the packages Hummingbird and swift-crypto, and LarderHTTPCache.",
      enabledTraits: ["HTTPCache"]),
    .trait(
      name: "Metrics",
      description: "The module LarderMetrics, which needs the packages that it reports through, and HTTPCacheMetering."),
    .trait(
      name: "HTTPCache",
      description: """
        The modules HTTPCachingRules, LarderHTTPCache and LarderURLSession, which need the packages of the types of HTTP and \
        of structured fields.
        """),
    .trait(
      name: "HTTPClient",
      description: "The module LarderHTTPClient, which needs the packages AsyncHTTPClient and swift-crypto, and zlib.",
      enabledTraits: ["HTTPCache"]),
  ],
  dependencies: [
    // Resolved only with the trait `Metrics`, `HTTPClient` or `Inspector`.
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    // Resolved only with the trait `Metrics`.
    .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.2.0"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    // Resolved only with the trait `ServiceLifecycle` or `Hummingbird`.
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
    // Resolved only with the trait `Configuration`.
    .package(
      url: "https://github.com/apple/swift-configuration", from: "1.0.0",
      traits: [
        .defaults, .trait(name: "CommandLineArguments", condition: .when(traits: ["Configuration"])),
        .trait(name: "YAML", condition: .when(traits: ["ConfigurationYAML"])),
      ]),
    // Resolved only with the trait `ConfigurationYAML`.
    .package(url: "https://github.com/jpsim/Yams", "5.4.0"..<"7.0.0"),
    // Resolved only with the trait `Hummingbird` or `Inspector`.
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    // Resolved only with the trait `Crypto`, `HTTPClient` or `Inspector`.
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    // Resolved only with the trait `GRDB`.
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    // Resolved only with the trait `HTTPCache`, `Hummingbird` or `Inspector`.
    .package(url: "https://github.com/apple/swift-http-types", from: "1.5.0"),
    // Resolved only with the trait `HTTPCache`.
    .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.3.0"),
    // Resolved only with the trait `HTTPClient`.
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    // Resolved only with the trait `HTTPClient`, `Hummingbird` or `Inspector`.
    .package(url: "https://github.com/apple/swift-nio", from: "2.100.0"),
  ],
  targets: [
    .target(name: "Larder", path: "Modules/Larder"),
    .systemLibrary(name: "CFileSystem", path: "Modules/SystemLibraries/CFileSystem"),
    .target(name: "LarderFiles", dependencies: ["Larder", "CFileSystem"], path: "Modules/Files/LarderFiles"),
    .target(name: "LarderJSON", dependencies: ["Larder", "LarderFiles"], path: "Modules/Stores/LarderJSON"),
    .systemLibrary(
      name: "CLMDB", path: "Modules/SystemLibraries/CLMDB", pkgConfig: "lmdb",
      providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
    .target(
      name: "LarderLMDB",
      dependencies: [
        "Larder", "LarderFiles", "LarderCBOR", .target(name: "CLMDB", condition: .when(traits: ["LMDB"])),
      ],
      path: "Modules/Stores/LarderLMDB"),
    .systemLibrary(
      name: "CSQLite", path: "Modules/SystemLibraries/CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    // Internal, because no store imports another.
    .target(
      name: "LarderSQLiteFormat", dependencies: ["Larder", "LarderFiles"], path: "Modules/Stores/LarderSQLiteFormat"),
    .target(
      name: "LarderSQLite",
      dependencies: [
        "Larder", "LarderFiles", "LarderCBOR", "LarderSQLiteFormat",
        .target(name: "CSQLite", condition: .when(traits: ["SQLite"])),
      ],
      path: "Modules/Stores/LarderSQLite"),
    .target(
      name: "LarderGRDB",
      dependencies: [
        "Larder", "LarderFiles", "LarderCBOR", "LarderSQLiteFormat",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
      ],
      path: "Modules/Stores/LarderGRDB"),
    .systemLibrary(
      name: "CPostgres", path: "Modules/SystemLibraries/CPostgres", pkgConfig: "libpq",
      providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .target(
      name: "LarderPostgres",
      dependencies: ["Larder", "LarderCBOR", .target(name: "CPostgres", condition: .when(traits: ["Postgres"]))],
      path: "Modules/Stores/LarderPostgres"),
    .systemLibrary(
      name: "CZlib", path: "Modules/SystemLibraries/CZlib", pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .target(
      name: "LarderCompression",
      dependencies: ["Larder", "LarderFiles", .target(name: "CZlib", condition: .when(traits: ["Compression"]))],
      path: "Modules/Codecs/LarderCompression"),
    .target(
      name: "LarderCompressedFile", dependencies: ["Larder", "LarderFiles", "LarderCompression"],
      path: "Modules/Stores/LarderCompressedFile"),
    .target(
      name: "LarderQueue", dependencies: ["Larder", "LarderFiles", "LarderCBOR"], path: "Modules/Stores/LarderQueue"),
    .target(name: "LarderStoreQueue", dependencies: ["Larder"], path: "Modules/Stores/LarderStoreQueue"),
    .target(name: "LarderCBOR", dependencies: ["Larder"], path: "Modules/Codecs/LarderCBOR"),
    .target(
      name: "LarderCrypto",
      dependencies: [
        "Larder", "LarderFiles",
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Crypto"])),
        .product(name: "CryptoExtras", package: "swift-crypto", condition: .when(traits: ["Crypto"])),
      ],
      path: "Modules/Codecs/LarderCrypto"),
    .target(name: "LarderCache", dependencies: ["Larder"], path: "Modules/Decorators/LarderCache"),
    .target(name: "LarderExpiry", dependencies: ["Larder"], path: "Modules/Decorators/LarderExpiry"),
    .target(name: "LarderBatching", dependencies: ["Larder"], path: "Modules/Decorators/LarderBatching"),
    .target(name: "LarderObservation", dependencies: ["Larder"], path: "Modules/Decorators/LarderObservation"),
    .target(name: "LarderBounded", dependencies: ["Larder"], path: "Modules/Decorators/LarderBounded"),
    .target(name: "LarderIndexes", dependencies: ["Larder"], path: "Modules/Decorators/LarderIndexes"),
    .target(name: "LarderMirror", dependencies: ["Larder"], path: "Modules/Decorators/LarderMirror"),
    .target(
      name: "LarderMetrics",
      dependencies: [
        "Larder",
        .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Metrics"])),
        .product(name: "CoreMetrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Metrics"])),
        .product(name: "Histogram", package: "hdrhistogram-swift", condition: .when(traits: ["Metrics"])),
      ],
      path: "Modules/Decorators/LarderMetrics"),
    .target(
      name: "LarderWorker",
      dependencies: [
        "Larder",
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
      ],
      path: "Modules/Applications/LarderWorker"),
    .target(
      name: "LarderCoordination",
      dependencies: [
        "Larder",
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
      ],
      path: "Modules/Applications/LarderCoordination"),
    .target(
      name: "LarderConfiguration",
      dependencies: [
        "Larder",
        .product(name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
        .product(name: "Yams", package: "Yams", condition: .when(traits: ["ConfigurationYAML"])),
      ],
      path: "Modules/Applications/LarderConfiguration"),
    .target(
      name: "LarderService",
      dependencies: [
        "Larder",
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
      ],
      path: "Modules/Applications/LarderService"),
    // Its tests are in the package of the examples, because that one builds Hummingbird anyway.
    .target(
      name: "LarderHummingbird",
      dependencies: [
        "Larder", "LarderCoordination", "LarderExpiry",
        .target(name: "HTTPCachingRules", condition: .when(traits: ["HTTPCache"])),
        .target(name: "LarderHTTPCache", condition: .when(traits: ["HTTPCache"])),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["Hummingbird"])),
        .product(name: "Hummingbird", package: "hummingbird", condition: .when(traits: ["Hummingbird"])),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Hummingbird"])),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["Hummingbird"])),
      ],
      path: "Modules/Applications/LarderHummingbird"),
    // Its tests are there too.
    .target(
      name: "LarderInspector",
      dependencies: [
        "Larder", "LarderCBOR", "LarderHTTPCache",
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Inspector"])),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["Inspector"])),
        .product(name: "Hummingbird", package: "hummingbird", condition: .when(traits: ["Inspector"])),
        .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Inspector"])),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Inspector"])),
      ],
      path: "Modules/Applications/LarderInspector"),
    // It imports no module of Larder, so that any HTTP library can use it.
    .target(
      name: "HTTPCachingRules",
      dependencies: [
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
        .product(
          name: "RawStructuredFieldValues", package: "swift-http-structured-headers",
          condition: .when(traits: ["HTTPCache"])),
      ],
      path: "Modules/HTTP/HTTPCachingRules"),
    .target(
      name: "LarderHTTPCache",
      dependencies: [
        "Larder", "HTTPCachingRules",
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
        .product(name: "CoreMetrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Metrics"])),
      ],
      path: "Modules/HTTP/LarderHTTPCache"),
    // Its tests are in the package of the examples, because that one builds AsyncHTTPClient anyway.
    .target(
      name: "LarderHTTPClient",
      dependencies: [
        "Larder", "LarderHTTPCache", "HTTPCachingRules",
        .target(name: "CZlib", condition: .when(traits: ["HTTPClient"])),
        .product(name: "AsyncHTTPClient", package: "async-http-client", condition: .when(traits: ["HTTPClient"])),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["HTTPClient"])),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPClient"])),
        .product(name: "Logging", package: "swift-log", condition: .when(traits: ["HTTPClient"])),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HTTPClient"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["HTTPClient"])),
      ],
      path: "Modules/HTTP/LarderHTTPClient"),
    // Its tests are in the package of the examples too, because they need the same server.
    .target(
      name: "LarderURLSession",
      dependencies: [
        "Larder", "LarderHTTPCache", "HTTPCachingRules",
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
      ],
      path: "Modules/HTTP/LarderURLSession"),
    // Exports the modules that need no C library.
    .target(
      name: "LarderKit",
      dependencies: [
        "Larder", "LarderBatching", "LarderBounded", "LarderCache", "LarderCBOR", "LarderExpiry", "LarderIndexes",
        "LarderJSON", "LarderMetrics", "LarderMirror", "LarderObservation", "LarderQueue", "LarderStoreQueue",
        "LarderWorker",
      ],
      path: "Modules/LarderKit"),
    .target(name: "LarderTesting", dependencies: ["Larder", "LarderFiles"], path: "Modules/Testing/LarderTesting"),
    .target(
      name: "LarderHummingbirdTesting",
      dependencies: [
        "LarderTesting",
        .product(name: "Hummingbird", package: "hummingbird", condition: .when(traits: ["Hummingbird"])),
      ],
      path: "Modules/Testing/LarderHummingbirdTesting"),

    .target(name: "TestSupport", dependencies: ["Larder", "LarderFiles", "LarderTesting"], path: "Tests/TestSupport"),

    // All test targets become one program, so this target serves all of them.
    .target(name: "ThreadSanitizerMutex", path: "Tests/ThreadSanitizerMutex"),
    .testTarget(
      name: "LarderTests",
      dependencies: ["Larder", "LarderFiles", "LarderTesting", "TestSupport", "ThreadSanitizerMutex"]),
    .testTarget(name: "LarderFilesTests", dependencies: ["LarderFiles", "LarderTesting", "TestSupport"]),
    .testTarget(name: "LarderJSONTests", dependencies: ["LarderJSON", "LarderFiles", "LarderTesting", "TestSupport"]),
    .testTarget(
      name: "LarderLMDBTests",
      dependencies: [
        "LarderLMDB", "LarderCBOR", "LarderFiles", "LarderTesting", "TestSupport",
        .target(name: "CLMDB", condition: .when(traits: ["LMDB"])),
      ]),
    .testTarget(
      name: "LarderSQLiteTests",
      dependencies: [
        "LarderSQLite", "LarderCBOR", "LarderFiles", "LarderTesting", "TestSupport",
        .target(name: "CSQLite", condition: .when(traits: ["SQLite"])),
      ]),
    .testTarget(
      name: "LarderPostgresTests",
      dependencies: [
        "LarderPostgres", "LarderCache", "LarderCBOR", "LarderStoreQueue", "LarderTesting", "TestSupport",
      ]),
    .testTarget(
      name: "LarderCompressionTests",
      dependencies: [
        "LarderCompression", "LarderCBOR", "LarderFiles", "LarderJSON", "LarderLMDB", "LarderTesting", "TestSupport",
        .target(name: "CZlib", condition: .when(traits: ["Compression"])),
      ]),
    .testTarget(
      name: "LarderCompressedFileTests",
      dependencies: [
        "LarderCompressedFile", "LarderCompression", "LarderCBOR", "LarderFiles", "LarderTesting", "TestSupport",
        .target(name: "CZlib", condition: .when(traits: ["Compression"])),
      ]),
    .testTarget(
      name: "LarderCBORTests", dependencies: ["LarderCBOR", "LarderTesting", "TestSupport"], exclude: ["Fixtures"]),
    .testTarget(
      name: "LarderCryptoTests",
      dependencies: [
        "LarderCrypto", "LarderCBOR", "LarderFiles", "LarderLMDB", "LarderTesting", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Crypto"])),
      ]),
    .testTarget(
      name: "LarderCacheTests",
      dependencies: [
        "LarderCache", "LarderBatching", "LarderJSON", "LarderLMDB", "LarderObservation", "LarderTesting",
        "TestSupport", "ThreadSanitizerMutex",
      ]),
    .testTarget(
      name: "LarderExpiryTests",
      dependencies: ["LarderExpiry", "LarderCBOR", "LarderCache", "LarderJSON", "LarderTesting", "TestSupport"]),
    .testTarget(
      name: "LarderBatchingTests",
      dependencies: ["LarderBatching", "LarderObservation", "LarderTesting", "TestSupport"]),
    .testTarget(
      name: "LarderBoundedTests",
      dependencies: [
        "LarderBounded", "LarderCompressedFile", "LarderExpiry", "LarderJSON", "LarderLMDB", "LarderObservation",
        "LarderSQLite", "LarderTesting", "TestSupport",
      ]),
    .testTarget(
      name: "LarderIndexesTests",
      dependencies: ["LarderIndexes", "LarderCBOR", "LarderLMDB", "LarderTesting", "TestSupport"]),
    .testTarget(name: "LarderMirrorTests", dependencies: ["LarderMirror", "LarderTesting", "TestSupport"]),
    .testTarget(
      name: "LarderObservationTests",
      dependencies: [
        "LarderObservation", "LarderCache", "LarderExpiry", "LarderBatching", "LarderJSON", "LarderTesting",
        "TestSupport",
      ]),
    .testTarget(
      name: "LarderQueueTests",
      dependencies: [
        "LarderQueue", "LarderCBOR", "LarderFiles", "LarderTesting", "TestSupport", "ThreadSanitizerMutex",
      ]),
    .testTarget(
      name: "LarderStoreQueueTests",
      dependencies: [
        "LarderStoreQueue", "LarderBatching", "LarderCBOR", "LarderExpiry", "LarderJSON", "LarderLMDB",
        "LarderObservation",
        "LarderQueue", "LarderTesting", "TestSupport", "ThreadSanitizerMutex",
      ]),
    .testTarget(
      name: "LarderMetricsTests",
      dependencies: [
        "LarderMetrics", "LarderStoreQueue", "LarderTesting", "TestSupport",
        .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
        .product(name: "InMemoryLogging", package: "swift-log", condition: .when(traits: ["Metrics"])),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Metrics"])),
      ]),
    .testTarget(
      name: "LarderWorkerTests",
      dependencies: [
        "LarderWorker", "LarderCBOR", "LarderLMDB", "LarderQueue", "LarderStoreQueue", "LarderTesting", "TestSupport",
        .product(name: "Logging", package: "swift-log", condition: .when(traits: ["ServiceLifecycle"])),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
        .product(
          name: "UnixSignals", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
        .product(
          name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle",
          condition: .when(traits: ["ServiceLifecycle"])),
      ]),
    .testTarget(
      name: "LarderConfigurationTests",
      dependencies: [
        "LarderConfiguration", "LarderBatching", "LarderBounded", "LarderCache", "LarderCBOR", "LarderCompression",
        "LarderCrypto", "LarderExpiry", "LarderJSON", "LarderLMDB", "LarderMetrics", "LarderMirror",
        "LarderObservation", "LarderPostgres", "LarderQueue", "LarderSQLite", "LarderStoreQueue", "LarderTesting",
        "LarderWorker", "TestSupport",
        .product(name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
        .product(
          name: "ConfigurationTesting", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
      ]),
    .testTarget(
      name: "LarderCoordinationTests",
      dependencies: [
        "LarderCoordination", "LarderCache", "LarderCBOR", "LarderFiles", "LarderLMDB", "LarderObservation",
        "LarderPostgres", "LarderSQLite", "LarderTesting", "TestSupport",
        .product(
          name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle",
          condition: .when(traits: ["ServiceLifecycle"])),
      ]),
    .testTarget(
      name: "LarderServiceTests",
      dependencies: [
        "LarderService", "LarderCoordination", "LarderExpiry", "LarderSQLite", "LarderStoreQueue", "LarderTesting",
        "LarderWorker", "TestSupport",
        .product(name: "Logging", package: "swift-log", condition: .when(traits: ["ServiceLifecycle"])),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
        .product(
          name: "UnixSignals", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
        .product(
          name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle",
          condition: .when(traits: ["ServiceLifecycle"])),
      ]),
    .testTarget(
      name: "HTTPCachingRulesTests",
      dependencies: [
        "HTTPCachingRules", "LarderTesting", "TestSupport",
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
      ]),
    .testTarget(
      name: "LarderHTTPCacheTests",
      dependencies: [
        "LarderHTTPCache", "HTTPCachingRules", "LarderCache", "LarderCBOR", "LarderCompressedFile", "LarderJSON",
        "LarderLMDB",
        "LarderTesting", "TestSupport",
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
        .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Metrics"])),
      ]),
    .testTarget(
      name: "TransactionTests",
      dependencies: [
        "LarderCache", "LarderCBOR", "LarderIndexes", "LarderJSON", "LarderLMDB", "LarderPostgres", "LarderSQLite",
        "LarderStoreQueue", "LarderTesting", "TestSupport",
      ]),
    .testTarget(
      name: "LarderTestingTests", dependencies: ["LarderTesting", "LarderCache", "LarderFiles", "TestSupport"]),
    .testTarget(
      name: "ScheduleTests",
      dependencies: [
        "LarderTesting", "LarderBatching", "LarderBounded", "LarderCache", "LarderCBOR", "LarderCompressedFile",
        "LarderCoordination", "LarderExpiry", "LarderFiles", "LarderHTTPCache", "LarderIndexes", "LarderJSON",
        "LarderMirror", "LarderObservation", "LarderQueue", "LarderStoreQueue", "TestSupport",
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
      ]),
    .testTarget(
      name: "FormatTests",
      dependencies: [
        "LarderBounded", "LarderCBOR", "LarderCompressedFile", "LarderCompression", "LarderCoordination",
        "LarderCrypto", "LarderExpiry", "LarderGRDB", "LarderHTTPCache", "LarderIndexes", "LarderJSON", "LarderLMDB",
        "LarderQueue", "LarderSQLite", "LarderStoreQueue", "LarderTesting", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPCache"])),
      ],
      exclude: ["Goldens", "Inputs", "read-formats.py"]),
    .testTarget(
      name: "ConformanceTests",
      dependencies: [
        "LarderTesting", "LarderBatching", "LarderBounded", "LarderCache", "LarderCBOR", "LarderCompressedFile",
        "LarderCompression",
        "LarderCoordination", "LarderCrypto", "LarderExpiry",
        "LarderFiles", "LarderGRDB", "LarderIndexes", "LarderJSON", "LarderKit", "LarderLMDB", "LarderMetrics",
        "LarderMirror", "LarderObservation", "LarderPostgres", "LarderQueue", "LarderSQLite", "LarderStoreQueue",
        "LarderWorker", "TestSupport", "Watched", "WholeFile",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
      ]),

    // The packages of the guides to writing a store and a decorator. They are here so that their tests run with those of this
    // package, with the settings of a guest. `Scripts/prove-isolation` builds them as what they are.
    .target(
      name: "WholeFile", dependencies: ["Larder", "LarderFiles"], path: "Examples/Plugins/WholeFile/Sources/WholeFile"),
    .testTarget(
      name: "WholeFileTests", dependencies: ["LarderTesting", "WholeFile"],
      path: "Examples/Plugins/WholeFile/Tests/WholeFileTests"),
    .target(name: "Watched", dependencies: ["Larder"], path: "Examples/Plugins/Watched/Sources/Watched"),
    .testTarget(
      name: "WatchedTests", dependencies: ["LarderExpiry", "LarderObservation", "LarderTesting", "Watched"],
      path: "Examples/Plugins/Watched/Tests/WatchedTests"),
  ],
  swiftLanguageModes: [.v6]
)

// CI sets LARDER_WARNINGS_AS_ERRORS. Without it, a new warning of a newer compiler never fails a dependant's build.
let warningsAreErrors = Context.environment["LARDER_WARNINGS_AS_ERRORS"] != nil

for target in package.targets where target.type != .system && target.path?.hasPrefix("Examples/Plugins/") != true {
  target.swiftSettings =
    (target.swiftSettings ?? []) + [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (warningsAreErrors ? [.treatAllWarnings(as: .error)] : [])
}
