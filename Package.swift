// swift-tools-version: 6.2

import PackageDescription

// A dependant resolves and builds only what it asks for:
//
// - A module that needs another package or a C library stands behind a trait of this manifest, off unless asked for.
//   With its trait off such a module is empty but for declarations that say which trait is missing.
// - The command-line tool, the examples and the benchmarks are nested packages with manifests of their own.
//
// `Scripts/prove-isolation` holds this manifest to that.

let package = Package(
  name: "Larder",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderFiles", targets: ["LarderFiles"]),
    .library(name: "LarderJSON", targets: ["LarderJSON"]),
    .library(name: "LarderLMDB", targets: ["LarderLMDB"]),
    .library(name: "LarderCBOR", targets: ["LarderCBOR"]),
    .library(name: "LarderExpiry", targets: ["LarderExpiry"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
  ],
  traits: [
    .trait(name: "LMDB", description: "The module LarderLMDB, which needs the C library LMDB.")
  ],
  targets: [
    .target(name: "Larder", path: "Modules/Larder"),
    .target(name: "LarderFiles", dependencies: ["Larder"], path: "Modules/Files/LarderFiles"),
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
    .target(name: "LarderCBOR", dependencies: ["Larder"], path: "Modules/Codecs/LarderCBOR"),
    .target(name: "LarderExpiry", dependencies: ["Larder"], path: "Modules/Decorators/LarderExpiry"),
    .target(name: "LarderTesting", dependencies: ["Larder", "LarderFiles"], path: "Modules/Testing/LarderTesting"),

    .target(name: "TestSupport", dependencies: ["Larder"], path: "Tests/TestSupport"),

    // All test targets become one program, so it serves them all.
    .target(name: "ThreadSanitizerMutex", path: "Tests/ThreadSanitizerMutex"),
    .testTarget(name: "LarderTests", dependencies: ["Larder", "LarderTesting", "TestSupport", "ThreadSanitizerMutex"]),
    .testTarget(name: "LarderFilesTests", dependencies: ["LarderFiles", "LarderTesting"]),
    .testTarget(name: "LarderJSONTests", dependencies: ["LarderJSON", "LarderFiles", "LarderTesting", "TestSupport"]),
    .testTarget(
      name: "LarderLMDBTests",
      dependencies: [
        "LarderLMDB", "LarderCBOR", "LarderFiles", "LarderTesting", "TestSupport",
        .target(name: "CLMDB", condition: .when(traits: ["LMDB"])),
      ]),
    .testTarget(name: "LarderCBORTests", dependencies: ["LarderCBOR", "LarderTesting"]),
    .testTarget(
      name: "LarderExpiryTests", dependencies: ["LarderExpiry", "LarderJSON", "LarderTesting", "TestSupport"]),
    .testTarget(name: "LarderTestingTests", dependencies: ["LarderTesting", "LarderFiles"]),
    .testTarget(
      name: "ConformanceTests",
      dependencies: ["LarderTesting", "LarderCBOR", "LarderExpiry", "LarderJSON", "LarderLMDB", "LarderFiles"]),
  ],
  swiftLanguageModes: [.v6]
)

// CI sets LARDER_WARNINGS_AS_ERRORS; a dependant's build never fails because a newer compiler learnt a new warning.
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
