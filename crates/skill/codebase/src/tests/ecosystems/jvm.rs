//! Maven and Gradle.

use super::*;

#[test]
fn maven_takes_managed_versions_and_resolves_no_properties() {
    let pom = r#"<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId><version>3.2.1</version></parent>
  <artifactId>shop</artifactId><version>1.2.3</version><description>A shop.</description>
  <properties><java.version>21</java.version><lombok.version>1.18.30</lombok.version></properties>
  <dependencies>
    <dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-data-jpa</artifactId></dependency>
    <dependency><groupId>org.projectlombok</groupId><artifactId>lombok</artifactId><version>${lombok.version}</version></dependency>
    <dependency><groupId>org.flywaydb</groupId><artifactId>flyway-core</artifactId></dependency>
    <dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>${junit.version}</version><scope>test</scope></dependency>
  </dependencies>
  <dependencyManagement><dependencies><dependency><groupId>org.flywaydb</groupId><artifactId>flyway-core</artifactId><version>10.4.1</version></dependency></dependencies></dependencyManagement>
  <build><plugins><plugin><groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId></plugin></plugins></build>
</project>"#;
    assert_eq!(
        all(&[("pom.xml", pom)]),
        [
            "flyway 10.4.1 1.0 maven",
            "java 21 1.0 maven",
            "lombok - 1.0 maven",
            "spring-boot 3.2.1 1.0 maven",
            "hibernate - 0.9 maven",
            "junit - 0.9 maven",
            "maven - 0.9 config_file",
            "spring-data - 0.9 maven",
            "spring-framework - 0.5 inferred",
            "shop 1.2.3 application maven",
        ]
    );
    let pom = "<project><parent><artifactId>all</artifactId><version>2.0</version></parent><artifactId>part</artifactId><version>${revision}</version><properties><java.version>${jdk}</java.version><maven.compiler.release>17</maven.compiler.release></properties></project>";
    let found = all(&[("pom.xml", pom)]);
    assert_eq!(
        found,
        [
            "java 17 1.0 maven",
            "maven - 0.9 config_file",
            "part - single maven"
        ]
    );
    let inherited = pom.replace("<version>${revision}</version>", "");
    assert_eq!(
        project(&of(&[("pom.xml", &inherited)])),
        "part 2.0 single maven"
    );
}

#[test]
fn gradle_is_read_without_running_it() {
    let build = r#"
plugins {
    id("org.springframework.boot") version "3.2.0"
    kotlin("jvm") version "1.9.22"
}
/* dependencies { implementation("io.ktor:ktor-server:1.0") } */
version = "0.9"
dependencies {
    implementation("org.springframework.boot:spring-boot-starter-web")
    implementation group: 'org.jooq', name: 'jooq', version: '3.19.1'
    implementation(libs.guava) // from the catalogue
    testImplementation("io.mockk:mockk:1.13.9")
    runtimeOnly("org.postgresql:postgresql:$postgres")
}
"#;
    let catalogue = "[versions]\nguava = \"33.0\"\n[libraries]\nguava = { module = \"com.google.guava:guava\", version.ref = \"guava\" }\n[plugins]\ndetekt = { id = \"io.gitlab.arturbosch.detekt\", version = \"1.23\" }\n";
    let settings = "rootProject.name = \"shop\"\ninclude(\n    \":app\",\n    \":lib\",\n)\n";
    assert_eq!(
        all(&[
            ("build.gradle.kts", build),
            ("gradle/libs.versions.toml", catalogue),
            ("settings.gradle.kts", settings)
        ]),
        [
            "detekt 1.23 1.0 gradle",
            "guava - 1.0 gradle",
            "jooq 3.19.1 1.0 gradle",
            "kotlin 1.9.22 1.0 gradle",
            "spring-boot 3.2.0 1.0 gradle",
            "gradle - 0.9 config_file",
            "mockk 1.13.9 0.9 gradle",
            "postgresql - 0.9 gradle",
            "spring-framework - 0.5 inferred",
            "shop 0.9 monorepo gradle",
        ]
    );
}

#[test]
fn gradle_is_read_whatever_block_a_line_stands_in() {
    let build = r"
buildscript { dependencies { classpath 'org.flywaydb:flyway-core:9.0' } }
apply plugin: 'java-library'
description = 'Parts.'
dependencies { implementation 'com.google.guava:guava:33.0@jar' }
java { toolchain { languageVersion = JavaLanguageVersion.of(21) } }
publishing {
    version = '7'
}
";
    let files = [("build.gradle", build)];
    assert_eq!(
        all(&files),
        [
            "guava 33.0 1.0 gradle",
            "java 21 1.0 gradle",
            "flyway 9.0 0.9 gradle",
            "gradle - 0.9 config_file",
            "- - library gradle",
        ]
    );
    let described = of(&files).project.description;
    assert_eq!(described.as_deref(), Some("Parts."));
}
