// swift-tools-version: 6.2

import PackageDescription

// A dependant resolves and builds only what it asks for:
//
// - A module that needs another package or a C library stands behind a trait of this manifest, off unless asked for.
//   `Larder`, `LarderFiles`, `LarderJSON` and `LarderTesting` need neither, so there is no trait yet.
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
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
  ],
  targets: [
    .target(name: "Larder", path: "Modules/Larder"),
    .target(name: "LarderFiles", dependencies: ["Larder"], path: "Modules/Files/LarderFiles"),
    .target(name: "LarderJSON", dependencies: ["Larder", "LarderFiles"], path: "Modules/Stores/LarderJSON"),
    .target(name: "LarderTesting", dependencies: ["Larder", "LarderFiles"], path: "Modules/Testing/LarderTesting"),

    // All test targets become one program, so it serves them all.
    .target(name: "ThreadSanitizerMutex", path: "Tests/ThreadSanitizerMutex"),
    .testTarget(name: "LarderTests", dependencies: ["Larder", "LarderTesting", "ThreadSanitizerMutex"]),
    .testTarget(name: "LarderFilesTests", dependencies: ["LarderFiles", "LarderTesting"]),
    .testTarget(name: "LarderJSONTests", dependencies: ["LarderJSON", "LarderFiles", "LarderTesting"]),
    .testTarget(name: "LarderTestingTests", dependencies: ["LarderTesting", "LarderFiles"]),
    .testTarget(name: "ConformanceTests", dependencies: ["LarderTesting", "LarderJSON", "LarderFiles"]),
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
