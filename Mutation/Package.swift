// swift-tools-version: 6.2

import PackageDescription

// A package of its own, because nothing else needs swift-syntax: `Scripts/mutants`.

let package = Package(
  name: "LarderMutation",
  platforms: [.macOS(.v15)],
  dependencies: [.package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.0")],
  targets: [
    .executableTarget(
      name: "FindMutants",
      dependencies: [
        .product(name: "SwiftOperators", package: "swift-syntax"),
        .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
      ]
    )
  ],
  swiftLanguageModes: [.v6]
)
