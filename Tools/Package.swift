// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that no user who depends on Larder resolves what only the command-line tool needs.

let package = Package(
  name: "LarderTools",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "larder", targets: ["LarderCommand"]),
    .executable(name: "larder-inspect", targets: ["LarderInspect"]),
  ],
  dependencies: [
    // By name, so that the folder of the repository may be called anything. The traits are those of Examples, in the same
    // order, so that both packages use the same compiled modules. The tool does not build the modules of GRDB, HTTPClient and
    // Hummingbird, and only `larder-inspect` builds Hummingbird.
    .package(
      name: "Larder", path: "..",
      traits: [
        "LMDB", "SQLite", "GRDB", "Postgres", "Metrics", "Compression", "Crypto", "HTTPClient", "ConfigurationYAML",
        "Hummingbird", "ServiceLifecycle", "Inspector",
      ]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
  ],
  targets: [
    // The code that the tool and the inspector share: the arguments that name a store, and the opening of stores.
    .target(
      name: "StoreAccess",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderFiles", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderCrypto", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderCompression", package: "Larder"),
        .product(name: "LarderBatching", package: "Larder"),
        .product(name: "LarderBounded", package: "Larder"),
        .product(name: "LarderCache", package: "Larder"),
        .product(name: "LarderConfiguration", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderMirror", package: "Larder"),
        .product(name: "LarderObservation", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    // Not "larder": on a disk that does not tell case apart, such a module would collide with `Larder`.
    .executableTarget(
      name: "LarderCommand",
      dependencies: [
        "StoreAccess",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderFiles", package: "Larder"),
        .product(name: "LarderCrypto", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderBatching", package: "Larder"),
        .product(name: "LarderMetrics", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ]
    ),
    // Not in the tool itself, so that building the tool does not build a web server.
    .executableTarget(
      name: "LarderInspect",
      dependencies: [
        "StoreAccess",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderInspector", package: "Larder"),
        .product(name: "LarderPostgres", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "HummingbirdTLS", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ]
    ),
    // A program that the tests kill.
    .executableTarget(
      name: "QueueWorker",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/QueueWorker"
    ),
    // A program whose writes are recorded, to cut the power between them.
    .executableTarget(
      name: "PowerCutWorker",
      dependencies: [
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderCompression", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/PowerCutWorker"
    ),
    .testTarget(
      name: "LarderCommandTests",
      dependencies: [
        "LarderCommand",
        "LarderInspect",
        "StoreAccess",
        "QueueWorker",
        .product(name: "Larder", package: "Larder"),
        .product(name: "LarderCBOR", package: "Larder"),
        .product(name: "LarderCompressedFile", package: "Larder"),
        .product(name: "LarderCompression", package: "Larder"),
        .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderFiles", package: "Larder"),
        .product(name: "LarderHTTPCache", package: "Larder"),
        .product(name: "LarderJSON", package: "Larder"),
        .product(name: "LarderLMDB", package: "Larder"),
        .product(name: "LarderQueue", package: "Larder"),
        .product(name: "LarderSQLite", package: "Larder"),
        .product(name: "LarderStoreQueue", package: "Larder"),
        .product(name: "LarderTesting", package: "Larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ]
    ),
  ],
  swiftLanguageModes: [.v6]
)

// CI sets LARDER_WARNINGS_AS_ERRORS; a build with a newer compiler never fails because it learned a new warning.
let warningsAreErrors = Context.environment["LARDER_WARNINGS_AS_ERRORS"] != nil

for target in package.targets where target.type != .system {
  target.swiftSettings =
    (target.swiftSettings ?? []) + [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (warningsAreErrors ? [.treatAllWarnings(as: .error)] : [])
}
